"""What stops a backup or a restore."""

from __future__ import annotations


class BackupError(Exception):
    """The message says what is wrong and what to do; nothing was changed."""

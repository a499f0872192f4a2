"""How large a file may be that somebody uploads."""

from __future__ import annotations

from django.conf import settings

# What comes with a file in its request: names, tokens, boundaries.
BESIDES_THE_FILE = 64 << 10


def largest_file() -> int:
    """In bytes."""
    return int(settings.MAX_UPLOAD_MB) << 20


def largest_request() -> int:
    """In bytes: of one that brings the largest file."""
    return largest_file() + BESIDES_THE_FILE

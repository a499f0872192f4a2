"""The size limit of uploaded files."""

from __future__ import annotations

from django.conf import settings

# The rest of the request: names, tokens, boundaries.
BESIDES_THE_FILE = 64 << 10


def largest_file() -> int:
    """In bytes."""
    return int(settings.MAX_UPLOAD_MB) << 20


def largest_request() -> int:
    """The largest request, in bytes."""
    return largest_file() + BESIDES_THE_FILE

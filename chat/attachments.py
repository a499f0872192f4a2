"""Text files attached to a message: each becomes a separate message, verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from django.core.files.uploadedfile import UploadedFile

from chat.models import one_line
from language.storable import is_storable

MOST_FILES = 5
# Bytes of one file.
LARGEST_FILE = 200_000


class BadFile(Exception):
    """A file cannot be sent; the message says why."""


@dataclass(frozen=True, slots=True)
class TextFile:
    name: str
    text: str


def read_files(uploads: Sequence[UploadedFile[bytes]]) -> list[TextFile]:
    """The files as text; empty ones are left out.

    Raises:
        BadFile: there are too many, or one is too large or is no text.
    """
    if len(uploads) > MOST_FILES:
        raise BadFile(f"These are {len(uploads)} files; attach at most {MOST_FILES} at once.")
    files = [_read(upload) for upload in uploads]
    return [file for file in files if file.text.strip()]


def _read(upload: UploadedFile[bytes]) -> TextFile:
    # Browsers on some systems send a whole path.
    name = one_line(PurePath((upload.name or "").replace("\\", "/")).name) or "file.txt"
    if (upload.size or 0) > LARGEST_FILE:
        raise BadFile(
            f"{name} has {(upload.size or 0) // 1000:,} kB; attach files of up to"
            f" {LARGEST_FILE // 1000:,} kB."
        )
    try:
        text = upload.read().decode()
    except UnicodeDecodeError:
        raise BadFile(f"{name} is not a text file in UTF-8. Attach text only.") from None
    if not is_storable(text):
        raise BadFile(f"{name} holds a character that cannot be stored (NUL). Attach text only.")
    return TextFile(name, text)

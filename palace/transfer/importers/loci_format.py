"""File names and versions of a Loci export, shared by writer and readers."""

from __future__ import annotations

FORMAT = "loci-palace"
# Readers refuse a higher version. Raise it for changed meanings, not for new fields and files.
VERSION = 1
MANIFEST = "manifest.json"
DATA = "data/"
PALACE = f"{DATA}palace.json"
# Referenced files come before those that refer to them.
FILES = (
    "wings",
    "entities",
    "rooms",
    "closets",
    "drawers",
    "facts",
    "fact_events",
    "episodes",
    "activities",
)


def file_of(name: str) -> str:
    """The path of one of `FILES`."""
    return f"{DATA}{name}.jsonl"

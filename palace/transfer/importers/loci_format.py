"""What a Loci export is called, and where things are in it; whoever writes or reads one agrees."""

from __future__ import annotations

FORMAT = "loci-palace"
# Readers refuse a higher one. New fields and files do not raise it; a changed meaning does.
VERSION = 1
MANIFEST = "manifest.json"
DATA = "data/"
PALACE = f"{DATA}palace.json"
# What is named in another's line comes before it.
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
    """Where the records of one of `FILES` are."""
    return f"{DATA}{name}.jsonl"

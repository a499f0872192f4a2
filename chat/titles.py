"""Titles and names: one line each, with something to see and to click on."""

from __future__ import annotations

from language.storable import storable_label

TITLE_LENGTH = 60
UNTITLED = "Untitled"


def one_line(text: str) -> str:
    """A title or a name as it was typed, without breaks; empty where nothing of it can be seen."""
    line = storable_label(" ".join(text.split()))
    return line if any(sign.isprintable() and not sign.isspace() for sign in line) else ""


def title_of(text: str) -> str:
    """For a conversation that begins so: the first line, cut between words."""
    line = next(filter(None, map(one_line, text.splitlines())), UNTITLED)
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH].rsplit(" ", 1)[0] + " …"

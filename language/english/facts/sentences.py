"""Sentences of a message, each where it stands, with what is not the writer's own blotted out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Of a longer message the beginning is read; a longer sentence is no sentence but a paste.
READ_CHARS = 12_000
SENTENCE_CHARS = 1_200
BLOT = "·"

# What stands between these is somebody else's, code, or a title. All of them are bounded.
_NOT_OWN = re.compile(
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]{1,300}`"
    r"|^[ \t]*>[^\n]*$"
    r"|https?://\S+"
    r"|\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»"
    r"|(?<!\w)'(?=[^\W\d])[^'\n]{1,200}(?:'\w[^'\n]{0,200}){0,4}'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_CODE_LINE = re.compile(
    r"^[^\n]*(?:[{};=<>\\]|\(\)|->)[ \t]*$|^[ \t]*(?:#|//|/\*|\w+ = )[^\n]*$", re.MULTILINE
)
# A full stop ends a sentence unless a short title or a single capital stands before it.
_END = re.compile(
    r"(?<!\b[Mm]r)(?<!\b[Dd]r)(?<!\bSt)(?<!\b[A-HJ-Z])(?<!\b[Mm]rs)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)"
    r"[.](?=\s|$|[)\"'”’])|[!?…]+|\n+|(?<=\s)[*•](?=\s)"
)
_LIMITED = re.compile(r"\b(?:Inc|Ltd|Corp|etc)\.(?=\s+[A-Z]|\s*$)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters `start` to `end` of a message.

    Attributes:
        text: As long as they are, with straight quotes, and quotations blotted out.
        question: It ends with a question mark.
    """

    text: str
    start: int
    end: int
    question: bool = False


def own_words(message: str) -> str:
    """Of the same length: what is quoted, code or an address is blotted out."""
    text = message[:READ_CHARS].replace("’", "'").replace("‘", "'")
    if (
        "`" in text
        or ">" in text
        or "http" in text
        or '"' in text
        or _TYPOGRAPHIC.search(text)
        or "'" in text
    ):
        text = _NOT_OWN.sub(_blotted, text)
    return _CODE_LINE.sub(_blotted, text) if _LOOKS_LIKE_CODE.search(text) else text


_TYPOGRAPHIC = re.compile(r"[“«]")
_LOOKS_LIKE_CODE = re.compile(r"[{};=\\]|\bdef \w+\(|^[ \t]*(?:#|//)", re.MULTILINE)


def _blotted(match: re.Match[str]) -> str:
    return BLOT * len(match[0])


def sentences_of(message: str) -> Iterator[Sentence]:
    """In order; those too long to be one are left out."""
    text = own_words(message)
    start = 0
    for end in _END.finditer(text):
        if text[end.start()] == "." and _LIMITED.search(
            text, max(start, end.start() - 5), end.end()
        ):
            continue
        yield from _sentence(text, start, end.start(), question="?" in end[0])
        start = end.end()
    yield from _sentence(text, start, len(text), question=False)


def _sentence(text: str, start: int, end: int, *, question: bool) -> Iterator[Sentence]:
    piece = text[start:end]
    bare = piece.strip(" \t\r\n.,;:!()-*•\"'")
    if not 3 <= len(bare) <= SENTENCE_CHARS:
        return
    first = start + piece.index(bare)
    yield Sentence(bare, first, first + len(bare), question)

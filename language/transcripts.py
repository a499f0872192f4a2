"""Turn and Transcript: what mining takes, from any source; and the prose of a message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, to the byte.

    Attributes:
        external_id: Its id within its conversation; the same message always has the same one.
        speaker: Who said it, by name; empty where only the role is known.
        said_at: Aware time of speaking.
        metadata: What its source wants kept beside it, as JSON can write it.
        only_for: The one agent that may find it; empty: every agent.
    """

    external_id: str
    role: Role
    text: str
    said_at: datetime
    speaker: str = ""
    metadata: Mapping[str, Any] | None = None
    only_for: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation in the order it was held.

    Attributes:
        source: Who brings it: `chat`, `chatgpt`, `claude`, `plain` …
        external_id: The conversation's id at that source.
        title: What the source calls it; may be empty.
        agent: The named agent that took part, where there was one.
        project: The project it belongs to, by name or by the path of its folder; its room gets the
            wing of that project.
        is_request: Its messages' ids are those of one request of a program. One that was deleted
            for good is not stored again: the request was repeated.
    """

    source: str
    external_id: str
    title: str
    turns: tuple[Turn, ...]
    agent: str = ""
    project: str = ""
    is_request: bool = False


_BLOCKS = re.compile(
    r"```.*?(?:```|\Z)"  # A block of code, also one that was cut off.
    r"|`[^`\n]*`"
    r"|</?[a-zA-Z!][^<>\n]{0,200}>"
    r"|(?:https?://|www\.)\S+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w[\w.]*"
    r"|\*\*|__|\\[a-zA-Z]+",
    re.DOTALL,
)
_LINES = re.compile(
    r"^[ \t]*(?:[|#>$].*|[-*_=~+]{3,}[ \t]*)$"
    r"|^.*(?:[{};]|=>|-->|\(\)|\)\s*:)[ \t]*$"  # A line of code outside of a block.
    r"|^[ \t]*(?:import|from|def|class|var|let|const|public|private|return|SELECT)\s[^,.?!]*$",
    re.MULTILINE,
)
_CLAUSE_END = re.compile(r"[.!?;:,](?= )|[。！？；：，、؟،।]")
_JOINER = "\u200d"  # Emoji of several parts are written with it.
_TONES_OF_SKIN = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_DEBRIS_IS_POSSIBLE = re.compile(r"[`<#>|{};\\$@=]|\*\*|__|---|://|www\.|\(\)|\):|\bimport\b")


def prose(text: str) -> str:
    """`text` with all that is not prose blanked out, character for character."""
    if not _DEBRIS_IS_POSSIBLE.search(text):
        return text
    return _LINES.sub(_blank, _BLOCKS.sub(_blank, text))


def first_words(text: str, limit: int) -> str:
    """The beginning of `text` on one line, at most `limit` characters.

    Cut after a clause, or between words, and never within what is seen as one character.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    ends = [mark.start() for mark in _CLAUSE_END.finditer(line, limit // 3, limit + 1)]
    space = line.rfind(" ", 0, limit + 1)
    cut = ends[-1] if ends else space if space > limit // 3 else limit
    while cut > 1 and (_is_joined(line[cut]) or line[cut - 1] == _JOINER):
        cut -= 1
    return line[:cut].rstrip(" ,;:-–—(")


def _is_joined(sign: str) -> bool:
    """Whether it belongs to the sign before: an accent, a vowel sign, a tone of skin."""
    return unicodedata.category(sign)[0] == "M" or sign == _JOINER or sign in _TONES_OF_SKIN


def _blank(match: re.Match[str]) -> str:
    return "\n".join(" " * len(line) for line in match.group().split("\n"))

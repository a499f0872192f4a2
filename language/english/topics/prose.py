"""A message's prose: what is left when code, addresses and markup are blanked out."""

from __future__ import annotations

import re

from language.english.lexicon import words

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
_DEBRIS_IS_POSSIBLE = re.compile(r"[`<#>|{};\\$@=]|\*\*|__|---|://|www\.|\(\)|\):|\bimport\b")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

# Fewer words than this say too little to tell the language by.
_ENOUGH_WORDS = 6
# English prose is about half function words; other languages share a few by accident.
_ENGLISH_SHARE = 0.22


def prose(text: str) -> str:
    """`text` with all that is not prose blanked out, character for character."""
    if not _DEBRIS_IS_POSSIBLE.search(text):
        return text
    return _LINES.sub(_blank, _BLOCKS.sub(_blank, text))


def is_english(text: str) -> bool:
    """Whether the beginning of `text` reads as English; what is too short to tell does."""
    found = [word.lower() for word in _WORD.findall(text[:400].replace("’", "'"))]
    if len(found) < _ENOUGH_WORDS:
        return text.isascii() or len(found) > len(text) / 20
    function = words("function")
    return sum(word in function for word in found) >= _ENGLISH_SHARE * len(found)


def first_words(text: str, limit: int) -> str:
    """The beginning of `text` on one line, at most `limit` characters, cut between words."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line.rfind(" ", 0, limit + 1)
    return line[: cut if cut > limit // 3 else limit].rstrip(" ,;:-–—(")


def _blank(match: re.Match[str]) -> str:
    return "\n".join(" " * len(line) for line in match.group().split("\n"))

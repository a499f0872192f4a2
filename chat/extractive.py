"""A reply without a model: the best drawers, quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.utils import timezone
from django.utils.formats import date_format

from palace.recall import Hit

NO_MODEL = "No language model is set, so I can only quote what is in your palace."
FAILED = "The model could not answer, so I quote what is in your palace."
NOTHING_FITS = "Nothing in your palace fits this."
MEMORY_OFF = "Memory is off here, so there is nothing I could quote."

QUOTED = 3
QUOTE_LENGTH = 500

# Signs that Markdown would read as more than themselves.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def extractive_reply(hits: Sequence[Hit] | None, *, why: str) -> str:
    """Markdown that quotes the best hits, each with its pointer.

    Args:
        hits: Best first; None where nothing was recalled at all.
        why: The sentence that says why no model answers.
    """
    if hits is None:
        return f"{why} {MEMORY_OFF}"
    telling = [hit for hit in hits if hit.is_informative]
    if not telling:
        return f"{why} {NOTHING_FITS}"
    return "\n\n".join([f"{why} Closest are:", *(_quoted(hit) for hit in telling[:QUOTED])])


def _quoted(hit: Hit) -> str:
    drawer = hit.drawer
    who = drawer.speaker or {"user": "You", "assistant": "Assistant"}.get(drawer.role, drawer.role)
    said = date_format(timezone.localtime(drawer.said_at), "j F Y")
    lines = _escaped(_stretch(hit)).splitlines()
    quote = "\n".join(f"> {line.strip()}  " for line in lines if line.strip())
    return f"{quote}\n>\n> {_escaped(who)}, {said} [{hit.pointer}]"


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _stretch(hit: Hit) -> str:
    """The passage closest to the question, shortened between words."""
    start, end = hit.passage
    text = hit.drawer.text
    quote = text[start:end].strip()
    cut_after = end < len(text.rstrip())
    if len(quote) > QUOTE_LENGTH:
        quote, cut_after = quote[:QUOTE_LENGTH].rsplit(None, 1)[0], True
    return ("… " if text[:start].strip() else "") + quote + (" …" if cut_after else "")

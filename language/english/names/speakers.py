"""Who speaks: a person, or a program by its role or make."""

from __future__ import annotations

import re

_PROGRAM = re.compile(
    r"^(?:the |my )?(?:user|assistant|human|ai|bot|system|tool|me|you|default|agent|model|unknown"
    r"|anonymous|function|loci|speaker ?\w?|person ?\w?|participant ?\w?|guest|client|customer"
    r"|agent ?\d*|ai assistant|virtual assistant|customer service)$"
    r"|gpt|claude|gemini|copilot|llama|mistral|deepseek|qwen|\bbard\b|openai|anthropic|\bgrok\b"
    r"|\bo[134]\b"
)
_PERSONAL = re.compile(r"[^\W\d_][^\d_/@#:]*")
_LONGEST_NAME = 4


def is_personal(speaker: str) -> bool:
    """Whether a speaker's name is a person's, rather than a role or a program."""
    name = speaker.strip()
    if not _PERSONAL.fullmatch(name) or len(name.split()) > _LONGEST_NAME:
        return False
    return not is_program(name)


def is_program(name: str) -> bool:
    """Whether a name says which program it is ("Assistant", "gpt-4o"); also true of no name."""
    plain = name.strip().lower()
    return not plain or _PROGRAM.search(plain) is not None

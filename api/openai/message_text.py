"""The words of a request's messages, without pictures, tool calls and instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from chat.extractive import NO_MODEL
from language.storable import digest
from language.transcripts import Role
from palace.models import Palace
from palace.storage import loci_answers, own_words

# System prompts belong to the program; nobody said them.
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class Said:
    role: Role
    text: str
    speaker: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """Its identity; stripped, because some programs trim whitespace."""
        return self.role, self.text.strip()

    @property
    def id(self) -> str:
        """A digest: equal words have equal ids."""
        return digest("\n".join(self.words))[:32]


@dataclass(frozen=True, slots=True)
class History:
    """The messages of a request.

    Attributes:
        said: In order.
        answered: The number of messages up to and including the last reply.
        opening: Whether there is no reply yet.
    """

    said: tuple[Said, ...]
    answered: int
    opening: bool

    @property
    def question(self) -> str:
        """The person's last message; empty if it has no words."""
        return next((each.text for each in reversed(self.said) if each.role == "user"), "")


def read_history(messages: Sequence[Mapping[str, Any]]) -> History:
    said: list[Said] = []
    answered, opening = 0, True
    for message in messages:
        role = _ROLES.get(message["role"])
        text = text_of(message.get("content"))
        if role:
            # Strip the block that an earlier recall inserted.
            text = own_words(role, text)
        quotes = role == "assistant" and text.startswith(NO_MODEL)
        # Quotes from the palace are filed already.
        if role and text.strip() and not quotes:
            name = message.get("name")
            said.append(Said(role, text, name if isinstance(name, str) else ""))
        if role == "assistant":
            answered, opening = len(said), False
    return History(tuple(said), answered, opening)


def without_our_answers(history: History, palace: Palace) -> History:
    """The history without Loci's own tool results."""
    answers = loci_answers(palace, {each.text for each in history.said if each.role == "tool"})
    if not answers:
        return history
    kept = [each.role != "tool" or each.text not in answers for each in history.said]
    return replace(
        history,
        said=tuple(compress(history.said, kept)),
        answered=sum(kept[: history.answered]),
    )


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))

"""What is said in a request's messages: the words, without pictures, calls and instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from chat.extractive import NO_MODEL
from language.transcripts import Role
from palace.models import Palace
from palace.storable import digest
from palace.storage.filing.answers import our_answers
from palace.storage.filing.injected import own_words

# A system prompt is how a program is made, not what anybody said.
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
        """By which it is known again: some programs drop blanks at the ends."""
        return self.role, self.text.strip()

    @property
    def id(self) -> str:
        """The same for the same words."""
        return digest("\n".join(self.words))[:32]


@dataclass(frozen=True, slots=True)
class History:
    """What a request tells.

    Attributes:
        said: In order.
        answered: How many of them came before the last reply, or are that reply.
        opening: Nothing was replied yet.
    """

    said: tuple[Said, ...]
    answered: int
    opening: bool

    @property
    def question(self) -> str:
        """What the person said last; empty where they said nothing in words."""
        return next((each.text for each in reversed(self.said) if each.role == "user"), "")


def read_history(messages: Sequence[Mapping[str, Any]]) -> History:
    said: list[Said] = []
    answered, opening = 0, True
    for message in messages:
        role = _ROLES.get(message["role"])
        text = text_of(message.get("content"))
        if role:
            # Without what an earlier recall put there: it is nobody's words, and no question.
            text = own_words(role, text)
        quotes = role == "assistant" and text.startswith(NO_MODEL)
        # Our own quotes from the palace are no news to it.
        if role and text.strip() and not quotes:
            name = message.get("name")
            said.append(Said(role, text, name if isinstance(name, str) else ""))
        if role == "assistant":
            answered, opening = len(said), False
    return History(tuple(said), answered, opening)


def without_our_answers(history: History, palace: Palace) -> History:
    """The history without what Loci itself answered when a model called it as a tool."""
    answers = our_answers(palace, {each.text for each in history.said if each.role == "tool"})
    if not answers:
        return history
    kept = [each.role != "tool" or each.text not in answers for each in history.said]
    return replace(
        history,
        said=tuple(compress(history.said, kept)),
        answered=sum(kept[: history.answered]),
    )


def text_of(content: object) -> str:
    """The words of a content: a text, or parts some of which are."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))

"""What a model is given: memories, instructions, and the end of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

from django.conf import settings

from chat.models import Agent, Message
from llm.chat import Message as Prompt
from llm.tokens import count_tokens

# How far back the model reads word for word, beside `CHAT_TURNS`; what is older comes by recall.
MOST_TOKENS = 6000

_BASE = "You are {name}. Today is {today}."
_ON_MEMORIES = (
    " The records above come from earlier conversations with the same person. Use them where "
    "they help, cite each one you use by its pointer in brackets, and do not mention them "
    "otherwise."
)


def window(messages: Iterable[Message]) -> list[Message]:
    """The last messages that fit, oldest first; the very last always does.

    Args:
        messages: Newest first.
    """
    taken: list[Message] = []
    tokens = 0
    for message in messages:
        tokens += count_tokens(message.text)
        if taken and (tokens > MOST_TOKENS or len(taken) == settings.CHAT_TURNS):
            break
        if message.text.strip():
            taken.append(message)
    return taken[::-1]


def prompt(
    agent: Agent | None, context: str, messages: Sequence[Message], now: datetime
) -> list[Prompt]:
    """The memory block first, then the instructions, then what was said."""
    name = agent.name if agent else Agent.FIRST_NAME
    base = _BASE.format(name=name, today=f"{now:%A, %d %B %Y, %H:%M} ({now:%Z})")
    if context:
        base += _ON_MEMORIES
    parts = [context, base, agent.instructions if agent else ""]
    system: Prompt = {"role": "system", "content": "\n\n".join(filter(None, parts))}
    said = [cast(Prompt, {"role": m.role, "content": m.text}) for m in messages]
    return [system, *said]

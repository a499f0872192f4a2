"""Generate conversations from a seed, to measure speed without a data set."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from language.transcripts import Role, Transcript, Turn

_WHO = ("my sister", "Derek", "our neighbour", "the plumber", "Amira", "my old teacher", "Tomas")
_DID = (
    "asked whether we could move",
    "sent me three photos of",
    "has finally finished repairing",
    "wants to borrow some money for",
    "could not stop talking about",
    "thinks we should sell",
)
_WHAT = (
    "the green canoe",
    "a second-hand piano",
    "the allotment behind the station",
    "her sourdough starter",
    "the broken greenhouse",
    "that rusty moped",
    "the holiday flat in Porto",
)
_WHEN = (
    "yesterday",
    "last Tuesday",
    "in early March",
    "two weeks ago",
    "this morning",
    "on Sunday",
)
_AND = (
    "I did not know what to say at first, but I think it was meant kindly.",
    "It rained all day, so we stayed in and looked for the papers instead.",
    "Do you remember what it cost when we asked the last time?",
    "I would rather wait until the prices have come down a little.",
    "Please keep it short when you write to them, they never read long letters.",
    "There are about forty steps up to the door, which is too much for my knee.",
)


def conversations(messages: int, *, seed: int = 1) -> Iterator[Transcript]:
    """Chats of 8 to 40 messages, about 30 words each, `messages` in all."""
    draw = random.Random(seed)  # noqa: S311 - made-up talk, no secret.
    start, number = datetime(2025, 1, 1, 9, tzinfo=UTC), 0
    while messages > 0:
        length = min(draw.randint(8, 40), messages)
        messages -= length
        number += 1
        start += timedelta(hours=draw.randint(2, 60))
        yield Transcript("sample", str(number), "", tuple(_turns(draw, length, start)))


def _turns(draw: random.Random, length: int, start: datetime) -> Iterator[Turn]:
    for place in range(length):
        who, did, what = (draw.choice(words) for words in (_WHO, _DID, _WHAT))
        ending = " ".join(draw.sample(_AND, k=draw.randint(1, 2)))
        text = f"{who.capitalize()} {did} {what} {draw.choice(_WHEN)}. {ending}"
        role: Role = "user" if place % 2 == 0 else "assistant"
        yield Turn(str(place), role, text, start + timedelta(minutes=place))

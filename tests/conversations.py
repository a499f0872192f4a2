"""Conversations of our own writing, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from language.transcripts import Transcript, Turn

START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)


def transcript(
    *texts: str, id: str = "c1", title: str = "", start: datetime = START, source: str = "plain"
) -> Transcript:
    """A chat: the person and the assistant in turns, a minute apart."""
    turns = tuple(
        Turn(
            external_id=str(place),
            role="user" if place % 2 == 0 else "assistant",
            text=text,
            said_at=start + timedelta(minutes=place),
        )
        for place, text in enumerate(texts)
    )
    return Transcript(source, id, title, turns)


BATTERY = transcript(
    "I tried a 12-AWG silicone wire on the efoil battery and it overheated after ten minutes.",
    "That wire is too thin for the current your motor draws. Try 8-AWG instead.",
    "Derek says his board in Lisbon has run on 10-AWG for two summers without trouble.",
    "Derek's motor may draw less. Measure the current at full throttle first.",
    id="battery",
    title="Battery wiring",
)
SOURDOUGH = transcript(
    "My sourdough starter smells of vinegar and the loaves come out flat. What am I doing wrong?",
    "It sounds hungry: feed it twice a day, and let the dough rise longer in a warm place.",
    "I always bake on Sundays, and please never suggest recipes with walnuts: I am allergic.",
    "Understood, no walnuts. A Sunday bake works well if you feed the starter on Saturday night.",
    id="sourdough",
    title="Flat sourdough",
    start=START + timedelta(days=7),
)
LISBON = transcript(
    "We booked a flat in Alfama for our trip to Lisbon in May. What should we not miss?",
    "Take tram 28 early, see the tile museum, and eat grilled sardines in Mouraria.",
    id="lisbon",
    title="Trip to Lisbon",
    start=START + timedelta(days=21),
)
EVERYTHING = (BATTERY, SOURDOUGH, LISBON)


SUBJECTS = (
    "The garden shed needs new planks and a coat of paint before the rain comes, board {}.",
    "My bicycle's rear brake squeals on hills, and the chain slipped again on ride {}.",
    "The tax office wants receipt {} for the train tickets I deducted last year.",
    "The school play has rehearsal {} tonight; Amira still forgets her lines as the queen.",
)


def long_transcript(length: int, *, id: str = "long") -> Transcript:
    """A conversation that changes its subject every 30 messages, each message its own."""
    texts = [SUBJECTS[n // 30 % len(SUBJECTS)].format(n) for n in range(length)]
    return transcript(*texts, id=id, title="Notes of a long day")

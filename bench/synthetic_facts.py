"""Facts of a synthetic palace: conversations that state them, read by the product's own rules."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from tqdm import tqdm

from language.transcripts import Transcript, Turn
from palace.knowledge.facts import learn_room
from palace.models import Drawer, Palace, Room

# One in this many conversations states facts, one in each of the user's messages.
STATING = 20
# Those who are often named, and often spoken of; every fourth statement is about a rarer name.
_OFTEN = ("Amira", "Derek", "Tomas")
_TRADES = ("plumber", "nurse", "teacher", "baker", "lawyer", "carpenter", "pilot", "gardener")
_TOWNS = ("Leeds", "Porto", "Ghent", "Graz", "Turin", "Bergen", "Tallinn", "Cork", "Lyon", "Basel")
_FIRMS = ("Siemens", "Philips", "Barclays", "Airbus", "Renault", "Nestlé", "Bosch", "Maersk")
_KINDS = ("rye", "green", "cold", "sweet", "dark", "wild", "smoked", "fresh", "dried", "spicy")
_FOODS = ("bread", "olives", "tea", "plums", "beans", "garlic", "trout", "cheese", "figs", "soup")
_OF_OTHERS = (
    "{who} lives in {town}.",
    "{who} works as a {trade}.",
    "{who} works at {firm}.",
    "{who} is allergic to {kind} {food}.",
    "{who} hates {kind} {food}.",
)
_OF_THE_USER = ("I like {kind} {food}.", "I can't stand {kind} {food}.", "I moved to {town}.")


def stating_facts(
    transcripts: Iterable[Transcript], names: Sequence[str], *, seed: int = 1
) -> Iterator[Transcript]:
    """The same conversations, some with a statement at the end of each message of the user.

    Args:
        names: Rarer names, of which some get facts.
    """
    draw = random.Random(seed)  # noqa: S311 - made-up talk, no secret.
    for number, transcript in enumerate(transcripts):
        if number % STATING == 0:
            turns = tuple(_stating(turn, draw, names) for turn in transcript.turns)
            transcript = replace(transcript, turns=turns)
        yield transcript


def _stating(turn: Turn, draw: random.Random, names: Sequence[str]) -> Turn:
    if turn.role != "user":
        return turn
    of_others = draw.random() < 0.5
    who = draw.choice(names) if draw.random() < 0.5 else draw.choice(_OFTEN)
    statement = draw.choice(_OF_OTHERS if of_others else _OF_THE_USER).format(
        who=who,
        town=draw.choice(_TOWNS),
        trade=draw.choice(_TRADES),
        firm=draw.choice(_FIRMS),
        kind=draw.choice(_KINDS),
        food=draw.choice(_FOODS),
    )
    return replace(turn, text=f"{turn.text} {statement}")


def learn_stated(palace: Palace, stating: Iterable[Transcript], *, read_at: datetime) -> None:
    """Read the conversations that state facts; the others count as read, for they state none."""
    ids = [each.external_id for each in stating]
    rooms = Room.objects.within(palace).filter(external_id__in=ids).order_by("started_at")
    for room in tqdm(rooms, desc=f"facts of {palace.owner}", leave=False, disable=None):
        learn_room(room)
    Drawer.objects.within(palace).unread().update(facts_read_at=read_at)

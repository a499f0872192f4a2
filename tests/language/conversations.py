"""Conversations of our own writing, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from language.extraction import Context, Extraction, Listed, Vectors
from language.transcripts import Turn
from llm.embedding import local
from palace.mining.model_extraction import extract
from tests.conversations import START


def embed(texts: Sequence[str]) -> Vectors:
    return local.embedder().embed(texts)[0]


def asked(*texts: str) -> list[Turn]:
    """A person and an assistant, in turns."""
    roles = ("user", "assistant")
    return [Turn(str(at), roles[at % 2], text, START) for at, text in enumerate(texts)]


def between(one: str, other: str, *texts: str) -> list[Turn]:
    """Two people, in turns."""
    names = (one, other)
    return [Turn(str(at), "user", text, START, names[at % 2]) for at, text in enumerate(texts)]


def read(window: Sequence[Turn], **context: Any) -> Extraction:
    """What the local extractor finds, with the real embedder."""
    context["entities"] = Listed(context.get("entities", ()))
    context.setdefault("speakers", tuple(sorted({turn.speaker for turn in window} - {""})))
    return extract(window, embed([turn.text for turn in window]), Context(**context), embed)


def names(extraction: Extraction, kind: str) -> set[str]:
    return {entity.name for entity in extraction.entities if entity.kind == kind}


SHED = asked(
    "I want to insulate my garden shed before winter. Which insulation boards would you choose?",
    "For a small shed, rigid foam boards between the studs work well, with a vapour barrier.",
    "My brother Tobias says mineral wool is better for the roof. Is he right?",
    "Mineral wool is fine for the roof if it stays dry; leave a gap for air.",
    "Tobias can help me next weekend, so how much wool do I need for a roof of nine square metres?",
    "About nine square metres plus a tenth for cutting, so ten square metres.",
)
PORTO = asked(
    "We have booked flights to Porto in October. What should we see in three days in the city?",
    "Walk along the river, see the tiled station and visit a port cellar in Gaia.",
    "Is a day trip from Porto to the Douro Valley worth it, or should we stay in the city?",
    "The Douro Valley is lovely in October; take the slow train along the river.",
)
FRIENDS = between(
    "Nadia",
    "Philippa",
    "Hey Pip! I finally signed up for the pottery class on Harbour Street.",
    "That's great, Nadia! Is it the pottery class your neighbour told you about?",
    "Yes! We glazed two bowls last Tuesday, and the pottery teacher says my glaze is nearly right.",
    "I would love to see the bowls, Nadia. Pottery class sounds like a good way to spend evenings.",
    "By the way, my cat Biscuit had to go to the vet yesterday, poor thing.",
    "Oh no, Nadia! What did the vet say about Biscuit? Is the cat eating again?",
    "The vet says the cat has a bad tooth. Biscuit gets soft cat food now and sleeps all day.",
    "Give Biscuit a stroke from me, Nadia. Our old cat had a tooth pulled by the same vet.",
)

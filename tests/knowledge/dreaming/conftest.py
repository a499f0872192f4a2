"""A palace with facts of our making, each on words of its own, and a model we play."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from language.facts import category_of, is_single
from llm.models import Usage
from palace.knowledge.dreaming.proposals import After, Finding, Kind, Quote, propose
from palace.models import Activity, Entity, Evidence, Fact, Proposal
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings
from tests.factories import EntityFactory, EvidenceFactory, FactFactory
from tests.knowledge.facts.conftest import model, said

__all__ = ["model"]

LONG_AGO = datetime(2024, 1, 10, 9, 0, tzinfo=UTC)


@pytest.fixture
def hold(palace):
    """Hold a fact about the user, on a drawer with its words."""

    def hold(text, predicate="does", object="", at=LONG_AGO, **more):
        user = Entity.objects.filter(palace=palace, slug="user").first() or EntityFactory(
            palace=palace, slug="user", name="User"
        )
        fact = FactFactory(
            subject=more.pop("subject", user),
            text=text,
            predicate=predicate,
            object=object or text.rpartition(" ")[2],
            category=more.pop("category", category_of(predicate)),
            single=more.pop("single", is_single(predicate)),
            valid_from=more.pop("valid_from", at),
            recorded_at=at,
            **more,
        )
        words = said(palace, more.get("words", f"{text}."), at)
        EvidenceFactory(fact=fact, drawer=words)
        fill_missing(palace, active_space(), [fact])
        return fact

    return hold


def proposed(palace, kind, *sources, after="", beside=(), quotes=(), **more):
    """A finding written down as a dream does; the proposal."""
    dream = Activity.objects.create(palace=palace, kind=Activity.Kind.DREAMT, summary="Dreamt.")
    finding = Finding(
        kind=Kind(kind),
        made_by="rules",
        sources=tuple(sources),
        beside=tuple(beside),
        quotes=tuple(Quote(drawer.pk, 0, len(drawer.text)) for drawer in quotes),
        after=After(after, **more) if after else None,
    )
    propose(palace, [finding], dream)
    return Proposal.objects.within(palace).filter(fingerprint=finding.fingerprint()).first()


def picture(palace):
    """What is held, to the byte, and on which words."""
    return sorted(
        (
            str(fact.memory),
            fact.text,
            fact.predicate,
            fact.object,
            fact.aspect,
            fact.category,
            json.dumps([fact.tags, fact.metadata], sort_keys=True),
            str(fact.valid_from),
            str(fact.valid_to),
            fact.confidence,
            tuple(
                Evidence.objects.filter(fact=fact)
                .order_by("drawer_id", "start")
                .values_list("drawer_id", "start", "end")
            ),
        )
        for fact in Fact.objects.within(palace).active()
    )


def held(palace):
    return sorted(fact.text for fact in Fact.objects.within(palace).active())


def consolidation(**parts):
    """What a model answers to the first question of a dream."""
    return json.dumps(parts)


def answers(model, consolidated="{}", preferences="{}"):
    """What the model says to each of a dream's two questions, whichever comes first."""

    def reply(request):
        first = "put the long-term memory" in request.prompt or '"memories"' in request.prompt
        return consolidated if first else preferences

    model.answer(reply)


def numbers_in(request):
    """The numbers under which a question shows its facts, by their texts."""
    material = request.prompt.split("<material>\n")[1].split("\n</material>")[0]
    return {one["text"]: one["id"] for one in json.loads(material)["memories"]}


def dream_costs():
    return Usage.objects.filter(purpose="memory_dream")


@pytest.fixture
def limited(palace):
    def limited(usd="10", tokens=1_000_000, **more):
        chosen = {"dream_limit_usd": Decimal(usd), "dream_limit_tokens": tokens, **more}
        MemorySettings.objects.update_or_create(owner=palace.owner, defaults=chosen)

    return limited

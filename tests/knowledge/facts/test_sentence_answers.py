"""A caller's prompt may ask for sentences alone: each is read as a statement, or kept as a note."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from palace.knowledge.facts.fact_extraction import ExtractionOptions
from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO, judgements_answer
from tests.model_server import CHAT

SENTENCES = [
    "User's name is Alice",
    "User works at Acme as a software engineer",
    "The user has a dog named Rex",
    "Ticket 4711 is still open",
]
WORDS = "I'm Alice, engineer at Acme. Rex, my dog, says hi. Ticket 4711 is still open!"
OPTIONS = ExtractionOptions("Note down tickets and names. Answer with a list of sentences.")


def active(palace):
    return list(Fact.objects.within(palace).active().order_by("pk"))


@pytest.mark.parametrize(
    "answer", [SENTENCES, {"facts": SENTENCES}], ids=["list", "list in an object"]
)
def test_sentences_become_facts_with_their_words(palace, model, answer):
    model.answer(json.dumps(answer))
    learnt = remember(palace, WORDS, options=OPTIONS, now=LONG_AGO)
    facts = active(palace)
    assert [fact.text for fact in facts] == SENTENCES
    assert [fact.predicate for fact in facts] == ["name", "works_at", "has_pet", "note"]
    assert facts[2].object_entity.kind == "pet"
    assert facts[3].subject.name == "User"
    assert all(fact.evidence.exists() for fact in facts)
    # Nothing had to be asked again, and nothing is said to be degraded.
    assert len(model.requests_to(CHAT)) == 1
    assert learnt.notes == []


def test_no_sentences_are_no_facts(palace, model):
    model.answer("[]")
    assert remember(palace, "Hello there.", options=OPTIONS, now=LONG_AGO) == []
    assert len(model.requests_to(CHAT)) == 1


def test_a_sentence_goes_through_the_checks_of_kind_and_date(palace, model):
    none = judgements_answer()
    model.script(
        [
            json.dumps({"facts": ["User lives in Porto"]}),
            json.dumps({"facts": ["User lives in Kubernetes", "User used to live in Rome"]}),
            none,
            none,
        ]
    )
    remember(palace, "I live in Porto.", options=OPTIONS, now=LONG_AGO)
    remember(palace, "We moved to Kubernetes. Rome was before.", options=OPTIONS, now=LONG_AGO)
    assert [fact.text for fact in active(palace)] == ["User lives in Porto"]
    rome = Fact.objects.get(palace=palace, object="Rome")
    assert rome.valid_to == LONG_AGO


def test_a_note_said_twice_is_one(palace, model):
    note = json.dumps(["Ticket 4711 is still open"])
    model.script([note, note, judgements_answer()])
    remember(palace, "4711 is open", options=OPTIONS, now=LONG_AGO)
    remember(palace, "still open: 4711", options=OPTIONS, now=LONG_AGO)
    [fact] = active(palace)
    assert fact.evidence.count() == 2


def test_a_memory_of_the_prompt_that_is_repeated_ends_nothing(palace, model):
    model.answer(json.dumps(["User lives in Berlin"]))
    remember(palace, "I live in Berlin.", options=OPTIONS, now=LONG_AGO)
    model.script([json.dumps(["User lives in Oslo", "User lives in Berlin"]), judgements_answer()])
    remember(palace, "I live in Oslo now.", options=OPTIONS, now=LONG_AGO + timedelta(days=30))
    assert [fact.text for fact in active(palace)] == ["User lives in Oslo"]


@pytest.mark.parametrize("said", ["None.", "No facts found.", "I cannot find any facts.", "N/A"])
def test_that_there_is_nothing_is_no_fact(palace, model, said):
    model.answer(json.dumps({"facts": [said]}))
    remember(palace, "Thanks!", options=OPTIONS, now=LONG_AGO)
    assert active(palace) == []

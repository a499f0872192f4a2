"""Predicates that are not listed: some are single by nature, the others hold many values."""

from __future__ import annotations

from datetime import timedelta

import pytest

from language.facts import is_single
from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.knowledge.facts.test_extraction import PORTO


@pytest.mark.parametrize(
    "name",
    ["shoe_size", "has_shoe_size", "blood_type", "eye_color", "native_language", "ring_size"],
)
def test_what_is_single_by_nature(name):
    assert is_single(name)


@pytest.mark.parametrize(
    "name", ["plays", "collects", "shoe_sizes", "phone_number", "downsize", ""]
)
def test_what_is_not(name):
    assert not is_single(name)


def coined(value, predicate="shoe_size", **more):
    text = f"User's {predicate.replace('_', ' ')} is {value}"
    return PORTO | {
        "predicate": predicate, "object": value, "object_kind": "", "text": text, "quote": "",
        "valid_from": "", **more,
    }  # fmt: skip


def tell(palace, model, *answers, judged="ADD"):
    for day, answer in enumerate(answers):
        model.script([facts_answer(answer), judgements_answer({"new": 0, "verdict": judged})])
        remember(palace, f"Day {day}.", now=LONG_AGO + timedelta(days=day))
    return sorted(Fact.objects.within(palace).active().values_list("object", flat=True))


@pytest.mark.parametrize("judged", ["ADD", "COEXIST", "no verdict"])
def test_two_coined_keys_are_one(palace, model, judged):
    assert tell(palace, model, coined("42"), coined("43"), judged=judged) == ["43"]
    [old] = Fact.objects.within(palace).exclude(retired_at=None)
    new = Fact.objects.within(palace).active().get()
    assert (new.supersedes, new.memory, old.object) == (old, old.memory, "42")


def test_another_aspect_or_subject_is_another_key(palace, model):
    kept = tell(
        palace,
        model,
        coined("42"),
        coined("41", aspect="running"),
        coined("36", subject="Freya", text="Freya's shoe size is 36"),
    )
    assert kept == ["36", "41", "42"]


def test_of_others_there_are_many(palace, model):
    assert tell(palace, model, coined("Stamps", "collects"), coined("Coins", "collects")) == [
        "Coins",
        "Stamps",
    ]

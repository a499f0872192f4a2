"""A statement whose object is of the wrong kind is not kept, and retires no fact."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from palace.knowledge.facts.fact_learning import remember
from palace.models import Entity, Fact
from tests.knowledge.facts.conftest import facts_answer, judgements_answer
from tests.model_server import CHAT


def held(palace):
    return sorted(Fact.objects.within(palace).active().values_list("text", flat=True))


@pytest.mark.parametrize(
    ("true", "tools", "kept"),
    [
        ("I live in Berlin.", "We moved to Kubernetes last month.", "User lives in Berlin"),
        ("I work at Siemens.", "I work at scale.", "User works at Siemens"),
        ("I am married to Anna.", "I am married to Rust.", "User is married to Anna"),
        ("I live in Berlin.", "We moved to Linear.", "User lives in Berlin"),
    ],
)
def test_talk_of_tools_retires_nothing(palace, true, tools, kept):
    now = timezone.now()
    remember(palace, true, now=now - timedelta(days=90))
    assert remember(palace, tools, now=now) == []
    assert held(palace) == [kept]


def test_what_one_uses_is_no_home_though_an_island_is_called_so(palace):
    remember(palace, "I live in Leeds.", now=timezone.now() - timedelta(days=90))
    remember(palace, "I use Java every day.")
    remember(palace, "We moved to Java last month.")
    assert "User lives in Leeds" in held(palace)


def test_what_was_mined_as_a_thing_is_no_home(palace):
    Entity.objects.create(palace=palace, kind="item", slug="marmot", name="Marmot")
    remember(palace, "I live in Leeds.", now=timezone.now() - timedelta(days=90))
    remember(palace, "We moved to Marmot last month.")
    assert held(palace) == ["User lives in Leeds"]


def test_true_moves_still_happen(palace):
    now = timezone.now()
    for days, text in ((9, "I live in Berlin."), (5, "I moved to Óbidos."), (1, "I live in Rye.")):
        remember(palace, text, now=now - timedelta(days=days))
    assert held(palace) == ["User lives in Rye"]


HOME = {"turn": 0, "subject": "User", "predicate": "lives_in", "object": "Berlin"}
HOME |= {"text": "User lives in Berlin"}


@pytest.mark.parametrize("predicate", ["lives_in", "uses"])
def test_a_model_cannot_retire_a_home_by_a_tool_either(palace, model, predicate):
    text = f"User {predicate} Kubernetes"
    tool = HOME | {"predicate": predicate, "object": "Kubernetes", "text": text}
    shift = judgements_answer({"new": 0, "verdict": "UPDATE", "fact": 0, "change": "shift"})
    model.script([facts_answer(HOME), facts_answer(tool), shift])
    remember(palace, "I live in Berlin.")
    remember(palace, "We moved to Kubernetes last month.")
    assert len(model.requests_to(CHAT)) == 3
    kept = ["User lives in Berlin"]
    assert held(palace) == (kept if predicate == "lives_in" else [*kept, text])

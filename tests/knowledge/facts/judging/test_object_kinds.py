"""A statement whose object is of the wrong kind is not kept, and retires no fact."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from palace.knowledge.facts.fact_learning import remember
from palace.models import Entity, Fact
from palace.recall.facts import MIN_CONFIDENCE
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


TRUE = ("User is married to Ana", "User lives in Berlin", "User works at Bosch")
TALK = """
    We moved to production last night.|We moved to Terraform Cloud.|We moved to Grafana Loki.
    We moved to AWS Frankfurt.|I moved to decaf.|We moved to Plan B.|I moved to oat milk.
    We moved to Monday.com last week.|I live in sweatpants.|I live in my leggings.
    I now work at the kitchen table.|I work at the command line now.|I work at ease now.
    I work at the whiteboard now.|I'm married to spreadsheets.|I moved to a role at Bosch.
    I moved to a new position in Ghent.|I moved to a new team at Google.
"""
UNSURE_HOMES = (
    "We moved to Proxmox.",
    "I moved to Arch.",
    "We moved to Snowplow last year.",
    "I moved to the Ghent office.",
)


@pytest.fixture
def settled(palace):
    said = "I live in Berlin. I work at Bosch. I am married to Ana."
    remember(palace, said, now=timezone.now() - timedelta(days=900))
    return palace


def test_common_nouns_and_names_of_services_are_no_homes_and_no_employers(settled):
    said = [text.strip() for line in TALK.strip().splitlines() for text in line.split("|")]
    learnt = [text for text in said if remember(settled, text)]
    assert learnt == []
    assert held(settled) == list(TRUE)


@pytest.mark.parametrize("said", UNSURE_HOMES)
def test_a_name_that_nothing_speaks_for_retires_nothing_and_is_not_recalled(settled, said):
    [line] = remember(settled, said)
    assert set(TRUE) < set(held(settled))
    assert line.fact.confidence < MIN_CONFIDENCE


def test_an_unsure_home_is_one_as_soon_as_words_speak_for_it(settled):
    remember(settled, "We moved to Zwinkel last week.")
    assert set(TRUE) < set(held(settled))
    remember(settled, "I live in Zwinkel now.")
    assert "User lives in Berlin" not in held(settled)
    home = Fact.objects.within(settled).active().get(predicate="lives_in")
    assert (home.object, home.single) == ("Zwinkel", True)
    assert home.confidence >= MIN_CONFIDENCE


@pytest.mark.parametrize(
    "said",
    [
        "We moved to Oberammergau last month.",
        "We moved to Zwinkel with our kids.",
        "i moved to szeged",
        "I moved back to my village near Pécs.",
        "We moved to the countryside last year.",
        "i work at tesco now",
        "I work for the council now.",
        "I now work at Fjordkraft.",
        "I work at a primary school now.",
        "I am married to Sunniva.",
    ],
)
def test_homes_employers_and_spouses_of_little_fame_take_the_place(settled, said):
    remember(settled, said)
    assert len(set(TRUE) & set(held(settled))) == 2


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

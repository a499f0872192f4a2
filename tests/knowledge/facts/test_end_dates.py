"""When a fact ended: when it was said, or before; never on the day of an import."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import remember
from palace.mining.pipeline import mine
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.knowledge.facts.test_extraction import PORTO

LATER = LONG_AGO + timedelta(days=30)


def ended(palace, text="User lives in Lisbon"):
    """When a fact ended; its row may be the one that was known, or a past one."""
    return Fact.objects.within(palace).filter(text=text).latest("pk").valid_to


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("I used to live in Lisbon.", LATER),
        ("I lived in Lisbon until 2023.", datetime(2023, 12, 31, tzinfo=UTC)),
        ("I no longer live in Lisbon.", LATER),
        ("I moved to Porto.", LATER),
    ],
)
def test_what_used_to_be_ends_by_the_day_of_the_message(palace, said, end):
    began = datetime(2020, 1, 1, tzinfo=UTC)
    remember(palace, "I live in Lisbon.", now=began)
    remember(palace, said, now=LATER)
    assert abs(ended(palace) - end) <= timedelta(days=1)
    assert not Fact.objects.within(palace).filter(valid_to__gt=LATER).exists()


@pytest.mark.parametrize("older_first", [True, False])
def test_so_it_is_in_an_import_in_any_order(palace, older_first):
    talks = [("I live in Lisbon.", LONG_AGO), ("I used to live in Lisbon.", LATER)]
    for text, at in talks if older_first else reversed(talks):
        turn = Turn(text, "user", text, at)
        mine(palace, Transcript("chatgpt", text, "", (turn,)))
    assert Fact.objects.within(palace).active().count() == 0
    ends = Fact.objects.within(palace).filter(fate__in=Fact.WAS_TRUE).values_list("valid_to")
    assert ends
    assert all(end <= LATER for (end,) in ends)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "judged",
    [{"verdict": "UPDATE", "fact": 0}, {"verdict": "DELETE", "fact": 0}, {"verdict": "ADD"}],
    ids=lambda one: one["verdict"],
)
@pytest.mark.parametrize("answered", ["", LATER.date().isoformat(), "2099-01-01"])
def test_so_it_is_when_a_model_judges(palace, model, judged, answered):
    lisbon = PORTO | {"object": "Lisbon", "text": "User lives in Lisbon", "quote": ""}
    past = lisbon | {"text": "User used to live in Lisbon", "valid_from": ""}
    past |= {"valid_to": answered}
    model.script(
        [facts_answer(lisbon), facts_answer(past), judgements_answer({"new": 0, **judged})]
    )
    remember(palace, "I live in Lisbon.", now=LONG_AGO)
    remember(palace, "I used to live in Lisbon.", now=LATER)
    facts = Fact.objects.within(palace).exclude(valid_to=None)
    assert facts
    assert not facts.filter(valid_to__gt=LATER).exists()
    past_ones = Fact.objects.within(palace).active().filter(text__contains="used to")
    assert not past_ones.exists()


def test_what_was_from_one_year_to_another_ends_with_the_other(palace):
    remember(palace, "I live in Lisbon.", now=datetime(2014, 6, 1, tzinfo=UTC))
    remember(palace, "I lived in Lisbon from 2015 to 2020.", now=LATER)
    lisbon = Fact.objects.within(palace).filter(object="Lisbon", fate__in=Fact.WAS_TRUE)
    assert max(fact.valid_to for fact in lisbon).year == 2020

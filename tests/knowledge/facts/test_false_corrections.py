"""A false correction in the trash brings the corrected fact back, however it was judged."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.audit import audit_palace
from palace.curation.deletion import delete_fact
from palace.curation.trash import restore, trash_drawers
from palace.knowledge.facts import Scope, fact_edits
from palace.knowledge.facts.fact_extraction import DEFAULT_OPTIONS, ExtractionOptions
from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Fact
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.knowledge.facts.test_extraction import PORTO

NEXT_DAY = LONG_AGO + timedelta(days=1)
WORK = ExtractionOptions(filters={"field": "tag", "operator": "eq", "value": "work"})
AGAINST_ALL = ExtractionOptions(
    filters={"field": "predicate", "operator": "eq", "value": "lives_in"}
)


def homes(palace):
    return [fact.object for fact in Fact.objects.within(palace).active()]


def broken(palace):
    return [one.check for one in audit_palace(palace) if one.wrong]


@pytest.mark.parametrize("options", [DEFAULT_OPTIONS, WORK, AGAINST_ALL])
@pytest.mark.parametrize(
    "correction", ["Actually, I live in Porto, not Lisbon.", "Sorry, I live in Porto."]
)
def test_the_corrected_fact_is_back(palace, options, correction):
    remember(palace, "I live in Lisbon.", now=LONG_AGO)
    remember(palace, correction, now=NEXT_DAY, options=options)
    assert homes(palace) == ["Porto"]
    false = Drawer.objects.within(palace).filter(said_at=NEXT_DAY)
    batch = trash_drawers(palace, false)
    assert homes(palace) == ["Lisbon"]
    active = Fact.objects.within(palace).active().get()
    assert (active.valid_from, active.valid_to) == (LONG_AGO, None)
    assert broken(palace) == []
    restore(palace, Drawer.objects.within(palace).filter(trashed_at=batch.at))
    assert homes(palace) == ["Porto"]
    assert broken(palace) == []


@pytest.mark.parametrize(
    "judged",
    [
        {"verdict": "UPDATE", "fact": 0, "change": "correction"},
        {"verdict": "UPDATE", "fact": 0, "change": "refinement"},
        {"verdict": "DELETE", "fact": 0, "change": "correction"},
        {"verdict": "ADD"},
    ],
    ids=["correction", "refinement", "denial", "misfire"],
)
def test_so_it_is_when_a_model_judged(palace, model, judged):
    lisbon = PORTO | {"object": "Lisbon", "text": "User lives in Lisbon", "quote": ""}
    model.script(
        [facts_answer(lisbon), facts_answer(PORTO), judgements_answer({"new": 0, **judged})]
    )
    remember(palace, "I live in Lisbon.", now=LONG_AGO)
    remember(palace, "No: in Porto.", now=NEXT_DAY)
    assert homes(palace) != ["Lisbon"]
    trash_drawers(palace, Drawer.objects.within(palace).filter(said_at=NEXT_DAY))
    assert homes(palace) == ["Lisbon"]
    assert broken(palace) == []


def test_an_edited_fact_that_is_deleted_stays_deleted(palace):
    remember(palace, "I work at Wireworks.", now=LONG_AGO)
    memory = Fact.objects.get(predicate="works_at").memory
    fact_edits.rewrite(palace, memory, "User works at Wireworks as a welder", Scope("page"))
    delete_fact(palace, memory, Scope("page"), doors=None)
    assert not Fact.objects.active().filter(memory=memory).exists()


@pytest.mark.parametrize(
    "of_others",
    [
        "My brother moved from Leeds to York.",
        "My friend Dora swapped Leeds for York.",
        "Ana and I are not hungry.",
    ],
)
def test_what_others_did_ends_nothing_of_ones_own(palace, of_others):
    remember(palace, "I live in Leeds. I am married to Ana.", now=LONG_AGO)
    before = set(Fact.objects.within(palace).active())
    remember(palace, of_others, now=NEXT_DAY)
    assert before <= set(Fact.objects.within(palace).active())

"""Whatever a fact took the place of is reachable from it by `supersedes`."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from config.audit import audit_palace
from palace.curation.entities import merge_entities
from palace.curation.purge import Purge
from palace.curation.trash import trash_drawers
from palace.knowledge.facts.direct_writes import Wording, merge
from palace.knowledge.facts.fact_chains import chain_of
from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Entity, Fact
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.knowledge.facts.test_concurrent_writers import in_threads
from tests.knowledge.facts.test_extraction import PORTO


def broken(palace):
    return {one.check: one.examples for one in audit_palace(palace) if one.wrong}


def lost(palace):
    """Objects of inactive rows that the active homes do not lead to."""
    facts = Fact.objects.within(palace).filter(predicate="lives_in")
    reached = {key for fact in facts.active() for key in chain_of(palace, fact.pk)}
    return sorted(facts.exclude(pk__in=reached).values_list("object", flat=True))


def read_or_misjudge(verdict):
    """A model that reads "I live in X." rightly, and judges every statement alike."""

    def reply(request):
        asked = request.body["messages"][-1]["content"]
        if "<facts>" in asked:
            data = json.loads(asked.removeprefix("<facts>\n").removesuffix("\n</facts>"))
            return judgements_answer(*({"new": one["new"], **verdict} for one in data))
        city = asked.rpartition("I live in ")[2].partition(".")[0]
        said = {"quote": "", "object": city, "text": f"User lives in {city}", "valid_from": ""}
        return facts_answer(PORTO | said)

    return reply


MISFIRES = [{"verdict": "ADD"}, {"verdict": "COEXIST"}, {"verdict": "DROP"}]


@pytest.mark.parametrize("verdict", MISFIRES, ids=lambda one: one["verdict"])
def test_a_judge_that_misfires_breaks_no_chain(palace, model, verdict):
    model.answer(read_or_misjudge(verdict))
    for day, city in enumerate(("Lisbon", "Porto", "Braga", "Faro")):
        remember(palace, f"I live in {city}.", now=LONG_AGO + timedelta(days=day))
    assert lost(palace) == []
    assert Fact.objects.within(palace).active().get().object == "Faro"
    assert Fact.objects.within(palace).values("memory").distinct().count() == 1
    assert broken(palace) == {}


def test_a_judge_that_names_another_fact_breaks_no_chain(palace, model):
    job = PORTO | {"predicate": "works_at", "object": "Bosch", "text": "User works at Bosch"}
    lisbon = PORTO | {"object": "Lisbon", "text": "User lives in Lisbon"}
    job, lisbon = ({**one, "quote": "", "valid_from": ""} for one in (job, lisbon))
    model.script(
        [
            facts_answer(PORTO | {"quote": "", "valid_from": ""}),
            facts_answer(job),
            judgements_answer({"new": 0, "verdict": "ADD"}),
            facts_answer(lisbon),
            read_or_misjudge({"verdict": "UPDATE", "fact": 0}),
        ]
    )
    for day, text in enumerate(("I live in Porto.", "I work at Bosch.", "Lisbon it is.")):
        remember(palace, text, now=LONG_AGO + timedelta(days=day))
    [fact] = Fact.objects.within(palace).active().filter(predicate="lives_in")
    assert fact.object == "Lisbon"
    assert lost(palace) == []
    assert broken(palace) == {}


@pytest.mark.parametrize("order", [(3, 1, 2, 0), (0, 3, 2, 1), (1, 0, 3, 2), (2, 3, 0, 1)])
def test_what_is_said_out_of_order_is_in_the_chain(palace, order):
    cities = ("Lisbon", "Porto", "Braga", "Faro")
    for day in order:
        remember(palace, f"I live in {cities[day]}.", now=LONG_AGO + timedelta(days=day))
    assert Fact.objects.within(palace).active().get().object == "Faro"
    assert lost(palace) == []
    assert broken(palace) == {}


def at_once(palace, count):
    """As many writers as that tell another city each, at moments that are not in their order."""
    cities = [f"Town{chr(65 + n % 26)}{chr(97 + n // 26)}" for n in range(count)]

    def tell(n):
        remember(palace, f"I live in {cities[n]}.", now=LONG_AGO + timedelta(days=n * 7 % count))

    in_threads(count, tell)
    facts = Fact.objects.within(palace).filter(predicate="lives_in")
    assert facts.active().count() == 1
    assert {fact.object for fact in facts} == set(cities)
    assert lost(palace) == []
    assert broken(palace) == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("misfires", [False, True], ids=["rules", "model"])
@pytest.mark.parametrize(
    "count", [8, pytest.param(50, marks=pytest.mark.exhaustive)], ids="{} writers".format
)
def test_many_writers_at_once_leave_one_whole_chain(palace, request, count, misfires):
    if misfires:
        model = request.getfixturevalue("model")
        request.getfixturevalue("settings").LLM_TIMEOUT_S = 60
        model.answer(read_or_misjudge({"verdict": "ADD"}))
    at_once(palace, count)


def test_a_purge_in_the_middle_bridges_the_gap(palace):
    for day, city in enumerate(("Lisbon", "Porto", "Braga")):
        remember(palace, f"I live in {city}.", now=LONG_AGO + timedelta(days=day))
    middle = Drawer.objects.within(palace).filter(said_at=LONG_AGO + timedelta(days=1))
    trash_drawers(palace, middle)
    Purge(palace).run(Drawer.objects.within(palace).filter(said_at=LONG_AGO + timedelta(days=1)))
    assert not Fact.objects.within(palace).filter(object="Porto").exists()
    assert lost(palace) == []
    assert broken(palace) == {}


def test_facts_that_are_merged_are_in_the_chain(palace, tell):
    for text in ("I own a bike.", "I own a red bicycle.", "I own a kite."):
        remember(palace, text, now=LONG_AGO)
    rows = list(Fact.objects.within(palace).active().order_by("pk"))
    made = merge(palace, rows, Wording("User owns a bike and a kite", "things"))
    assert set(chain_of(palace, made.pk)) == {made.pk, *(row.pk for row in rows)}
    assert broken(palace) == {}


def test_facts_of_merged_entities_are_in_the_chain(palace):
    remember(palace, "My sister Freya lives in Aarhus.", now=LONG_AGO)
    remember(palace, "My sister Frieda lives in Odense.", now=LONG_AGO + timedelta(days=9))
    one, other = (Entity.objects.get(palace=palace, name=name) for name in ("Freya", "Frieda"))
    merge_entities(palace, one, other)
    assert "aarhus" not in [one.lower() for one in lost(palace)]
    assert broken(palace) == {}

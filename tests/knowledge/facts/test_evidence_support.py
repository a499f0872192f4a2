"""Facts go with the words they rest on, and come back with them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from llm.embedding import cache
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.models import Activity, Drawer, Entity, Evidence, Fact, FactEvent, FactVector
from palace.storage.indexing.spaces import active_space, model_of
from tests.knowledge.facts.conftest import LONG_AGO, statement

PORTO = statement("User lives in Porto", object="Porto")
LISBON = statement("User lives in Lisbon", object="Lisbon")


def held(palace):
    return [fact.text for fact in Fact.objects.within(palace).active().order_by("text")]


def rests_on(line):
    return Drawer.objects.get(evidence__fact=line.fact)


@pytest.fixture
def at_home(tell):
    return tell(PORTO)


def test_the_receipt_lists_what_went(palace, at_home):
    batch = move_to_trash(rests_on(at_home))
    assert batch.facts == ("User lives in Porto",)
    assert held(palace) == []
    detail = Activity.objects.get(kind=Activity.Kind.DRAWERS_TRASHED).detail
    assert detail["facts"] == [str(at_home.memory)]


def test_what_is_restored_holds_again(palace, at_home):
    move_to_trash(rests_on(at_home))
    restore(palace, Drawer.objects.all())
    assert held(palace) == ["User lives in Porto"]
    assert [event.event for event in FactEvent.objects.order_by("pk")] == ["ADD", "DELETE", "ADD"]
    assert FactVector.objects.filter(fact__in=Fact.objects.active()).count() == 1


def test_a_fact_with_other_words_stays(palace, at_home, tell):
    tell(PORTO, at=LONG_AGO + timedelta(days=1))
    first = Drawer.objects.order_by("said_at").first()
    assert move_to_trash(first).facts == ()
    assert held(palace) == ["User lives in Porto"]


def test_what_was_replaced_meanwhile_does_not_come_back(palace, at_home, tell):
    batch = move_to_trash(rests_on(at_home))
    tell(LISBON, at=LONG_AGO + timedelta(days=1))
    restore(palace, Drawer.objects.filter(trashed_at=batch.at))
    assert held(palace) == ["User lives in Lisbon"]


def test_a_purge_leaves_no_word_of_it(palace, at_home):
    cached = cache.keys([at_home.fact.text], model_of(active_space()))
    assert cache.look_up(cached)
    move_to_trash(rests_on(at_home))
    Purge(palace).run(Drawer.objects.all())
    assert not cache.look_up(cached)
    for table in (Fact, FactEvent, FactVector, Evidence, Entity, Drawer):
        assert not table.objects.exists(), table


def test_a_purge_takes_the_words_out_of_a_history_that_goes_on(palace, at_home, tell):
    first = rests_on(at_home)
    tell(LISBON, at=LONG_AGO + timedelta(days=1))
    move_to_trash(first)
    Purge(palace).run(Drawer.objects.all())
    assert held(palace) == ["User lives in Lisbon"]
    events = FactEvent.objects.values_list("event", "old_text", "new_text").order_by("pk")
    assert list(events) == [("ADD", None, None), ("UPDATE", None, "User lives in Lisbon")]

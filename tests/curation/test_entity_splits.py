"""One entity made two."""

from __future__ import annotations

import pytest

from language.facts import Thing
from palace.curation.entities import (
    BadEntity,
    split_entity,
    undo,
)
from palace.knowledge.facts.row_conversion import entity_for
from palace.models import Fact, FactEvent
from tests.curation.conftest import JULY, MARCH, MAY, entity, everything, fact, held, lives, so
from tests.factories import MentionFactory


def test_one_name_of_two_is_split(palace, derek):
    stays, goes = fact(derek, "Derek sails boats"), fact(derek, "Derek bakes bread")
    knows = fact(entity(palace, "Ana"), "Ana knows Derek", object_entity=derek)
    named, left = MentionFactory(entity=derek), MentionFactory(entity=derek)
    change = split_entity(
        palace,
        derek,
        name="Derek the baker",
        facts=[goes.uuid, knows.uuid],
        drawers=[named.drawer.uuid],
        aliases=["DEL"],
    )
    new = change.entity
    assert (new.name, new.kind, new.aliases) == ("Derek the baker", "person", ["Del"])
    derek.refresh_from_db()
    assert derek.aliases == []
    assert (held(derek), held(new)) == ([stays.text], [goes.text])
    knows.refresh_from_db()
    assert knows.object_entity == new
    assert list(new.mentions.all()) == [named]
    assert list(derek.mentions.all()) == [left]
    assert change.activity.summary == "“Derek the baker” was split off “Derek”."


def test_both_may_have_the_same_name_and_mining_finds_the_first(palace, derek):
    goes = fact(derek, "Derek bakes bread")
    first = split_entity(palace, derek, name="Derek", facts=[goes.uuid]).entity
    assert first.slug == "derek-2"
    assert split_entity(palace, derek, name="Derek", aliases=["Del"]).entity.slug == "derek-3"
    assert entity_for(palace, Thing("Derek", "person")) == derek


@pytest.fixture
def confused(derek):
    """One Derek lives in Oslo, the other in Porto; it was taken for a move."""
    old = lives(derek, "Oslo", valid_to=MAY, retired_at=MAY, fate=Fact.Fate.SUPERSEDED)
    new = lives(derek, "Porto", valid_from=MAY, memory=old.memory, supersedes=old)
    return old, new


@pytest.mark.parametrize("which", [0, 1])
def test_what_was_taken_for_a_change_holds_again(palace, derek, confused, which):
    change = split_entity(palace, derek, name="Derek", facts=[confused[which].uuid])
    homes = held(derek), held(change.entity)
    assert sorted(homes) == [["Derek lives in Oslo"], ["Derek lives in Porto"]]
    assert homes[which == 0] == [confused[which].text] or homes[1] == [confused[which].text]
    assert so(palace, MARCH) == ["Derek lives in Oslo"]
    assert so(palace, JULY) == ["Derek lives in Oslo", "Derek lives in Porto"]
    oslo = Fact.objects.active().get(text="Derek lives in Oslo")
    assert oslo.memory != confused[0].memory
    assert oslo.evidence.count() == 1
    [event] = FactEvent.objects.filter(memory=oslo.memory)
    assert event.event == "ADD"


def test_what_was_refined_goes_along(palace, derek):
    old = fact(derek, "Derek bakes", retired_at=MAY, fate=Fact.Fate.REFINED)
    new = fact(derek, "Derek bakes bread", memory=old.memory, supersedes=old)
    baker = split_entity(palace, derek, name="Derek", facts=[new.uuid]).entity
    assert set(baker.facts.all()) == {old, new}


def test_a_split_can_be_undone(palace, derek, confused):
    goes = fact(derek, "Derek bakes bread")
    MentionFactory(entity=derek)
    named = MentionFactory(entity=derek)
    before = everything(palace)
    change = split_entity(
        palace, derek, name="Derek", facts=[goes.uuid, confused[1].uuid],
        drawers=[named.drawer.uuid], aliases=["Del"],
    )  # fmt: skip
    assert everything(palace) != before
    assert undo(palace, change.activity)
    assert everything(palace) == before
    assert so(palace, MARCH) == ["Derek bakes bread", "Derek lives in Oslo"]
    assert so(palace, JULY) == ["Derek bakes bread", "Derek lives in Porto"]
    assert not undo(palace, change.activity)


def test_what_was_learnt_of_the_new_one_comes_back_too(palace, derek):
    goes = fact(derek, "Derek bakes bread")
    change = split_entity(palace, derek, name="Derek", facts=[goes.uuid])
    fact(change.entity, "Derek bakes cakes")
    undo(palace, change.activity)
    assert held(derek) == ["Derek bakes bread", "Derek bakes cakes"]


def test_what_was_split_off_and_is_gone_cannot_be_put_back(palace, derek):
    change = split_entity(palace, derek, name="Dee", aliases=["Del"])
    change.entity.delete()
    with pytest.raises(BadEntity, match="no longer exists"):
        undo(palace, change.activity)

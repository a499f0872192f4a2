"""Two entities made one, and what they had put right again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.facts import USER, Thing
from palace.curation.entities import (
    BadEntity,
    forget_changes,
    merge_entities,
    split_entity,
    undo,
)
from palace.knowledge.facts.row_conversion import entity_for
from palace.models import Activity, Entity, Fact, FactEvent, Mention, Palace
from tests.curation.conftest import JULY, MARCH, MAY, entity, everything, fact, held, lives, so
from tests.curation.test_trash import at_once
from tests.factories import MentionFactory


@pytest.fixture
def dirk(palace):
    return entity(palace, "Dirk", aliases=["Dirky"])


def test_a_merge_moves_facts_mentions_and_names(palace, derek, dirk):
    fact(dirk, "Dirk sails boats", predicate="does")
    ana = entity(palace, "Ana")
    fact(ana, "Ana knows Dirk", object_entity=dirk)
    mention = MentionFactory(entity=dirk)
    change = merge_entities(palace, derek, dirk)
    assert change.entity == derek
    assert change.entity.aliases == ["Del", "Dirk", "Dirky"]
    assert held(derek) == ["Dirk sails boats"]
    assert Fact.objects.get(subject=ana).object_entity == derek
    mention.refresh_from_db()
    assert mention.entity == derek
    assert not Entity.objects.filter(name="Dirk").exists()
    assert entity_for(palace, Thing("Dirk", "person")) == derek
    assert change.activity.summary == "“Dirk” was merged into “Derek”."


def test_the_user_is_merged_into_nobody(palace, derek):
    user = entity(palace, USER)
    with pytest.raises(BadEntity, match="Merge the other name into You"):
        merge_entities(palace, derek, user)
    assert merge_entities(palace, user, derek).entity.aliases == ["Derek", "Del"]


def test_doing_it_again_says_what_was_done(palace, derek, dirk):
    first = merge_entities(palace, derek, dirk)
    assert merge_entities(palace, derek, dirk) == first
    assert Activity.objects.count() == 1


def test_of_what_one_can_have_the_newer_holds(palace, derek, dirk):
    older, newer = lives(derek, "Oslo"), lives(dirk, "Porto", valid_from=MAY)
    merge_entities(palace, derek, dirk)
    older.refresh_from_db()
    newer.refresh_from_db()
    assert (newer.subject, newer.retired_at) == (derek, None)
    assert (older.fate, older.valid_to) == (Fact.Fate.SUPERSEDED, MAY)
    assert so(palace, MARCH) == ["Derek lives in Oslo"]
    assert so(palace, MAY) == ["Dirk lives in Porto"]
    [event] = FactEvent.objects.filter(memory=older.memory)
    assert (event.event, event.old_text, event.by) == ("DELETE", older.text, "person")


def test_the_newer_one_may_be_of_the_one_that_is_kept(palace, derek, dirk):
    lives(dirk, "Porto", valid_from=None)
    lives(derek, "Oslo")
    merge_entities(palace, derek, dirk)
    assert held(derek) == ["Derek lives in Oslo"]


def test_facts_of_different_agents_do_not_collide(palace, derek, dirk):
    lives(derek, "Oslo", agent="cook")
    lives(dirk, "Porto")
    merge_entities(palace, derek, dirk)
    assert held(derek) == ["Derek lives in Oslo", "Dirk lives in Porto"]


def test_what_says_the_same_becomes_one_with_the_words_of_both(palace, derek, dirk):
    first = lives(derek, "Oslo")
    lives(dirk, "oslo", valid_from=MAY)
    merge_entities(palace, derek, dirk)
    assert held(derek) == ["Derek lives in Oslo"]
    assert first.evidence.count() == 2
    assert so(palace, JULY) == ["Derek lives in Oslo"]


def test_a_third_one_who_knew_both_knows_one(palace, derek, dirk):
    ana = entity(palace, "Ana")
    for friend in (derek, dirk):
        fact(ana, f"Ana knows {friend}", object_entity=friend)
    merge_entities(palace, derek, dirk)
    assert held(ana) == ["Ana knows Derek"]


def test_events_happen_again(palace, derek, dirk):
    for who, when in ((derek, MARCH), (dirk, MAY)):
        fact(who, "He went to Rome", type="event", valid_from=when)
    merge_entities(palace, derek, dirk)
    assert len(held(derek)) == 2


def test_facts_that_were_alike_before_stay_as_they_are(palace, derek, dirk):
    for _ in range(2):
        fact(derek, "Derek sails boats")
        fact(dirk, "Dirk bakes bread")
    merge_entities(palace, derek, dirk)
    assert len(held(derek)) == 4


def test_a_place_where_both_are_named_is_one_mention(palace, derek, dirk):
    both = MentionFactory(entity=derek)
    MentionFactory(entity=dirk, drawer=both.drawer)
    merge_entities(palace, derek, dirk)
    assert Mention.objects.get().entity == derek


@pytest.fixture
def two_lives(palace, derek, dirk):
    """All that can collide, and more."""
    lives(derek, "Oslo", valid_to=JULY)
    lives(dirk, "Porto", valid_from=MAY)
    fact(derek, "Derek sails boats", predicate="does")
    fact(dirk, "Dirk sails boats", predicate="does", valid_from=MAY)
    ana = entity(palace, "Ana")
    for friend in (derek, dirk):
        fact(ana, f"Ana knows {friend}", object_entity=friend)
    both = MentionFactory(entity=derek)
    MentionFactory(entity=dirk, drawer=both.drawer)
    MentionFactory(entity=dirk)
    return palace


def test_a_merge_can_be_undone_to_the_last_row(palace, derek, dirk, two_lives):
    before = everything(palace)
    change = merge_entities(palace, derek, dirk)
    assert everything(palace) != before
    assert undo(palace, change.activity)
    assert everything(palace) == before
    assert so(palace, JULY) == [
        "Ana knows Derek",
        "Ana knows Dirk",
        "Derek sails boats",
        "Dirk lives in Porto",
        "Dirk sails boats",
    ]
    assert so(palace, MAY).count("Derek lives in Oslo") == 1


def test_undoing_again_changes_nothing(palace, derek, dirk, two_lives):
    change = merge_entities(palace, derek, dirk)
    undo(palace, change.activity)
    before = everything(palace)
    assert not undo(palace, change.activity)
    assert everything(palace) == before
    assert Activity.objects.count() == 2


def test_merged_undone_and_merged_again(palace, derek, dirk, two_lives):
    first = merge_entities(palace, derek, dirk)
    merged = everything(palace)
    undo(palace, first.activity)
    second = merge_entities(palace, derek, dirk)
    assert second.activity != first.activity
    assert everything(palace)[:3] == merged[:3]
    assert held(derek) == ["Derek sails boats", "Dirk lives in Porto"]


def test_what_was_learnt_since_goes_before_what_comes_back(palace, derek, dirk):
    lives(derek, "Oslo")
    newer = lives(dirk, "Porto", valid_from=MAY)
    change = merge_entities(palace, derek, dirk)
    newer.refresh_from_db()
    newer.retired_at, newer.fate, newer.valid_to = JULY, Fact.Fate.SUPERSEDED, JULY
    newer.save()
    lives(derek, "Rome", valid_from=JULY, recorded_at=JULY)
    undo(palace, change.activity)
    back = Entity.objects.get(name="Dirk")
    assert held(derek) == ["Derek lives in Rome"]
    assert Fact.objects.get(pk=newer.pk).subject == back


def test_a_memory_that_changed_since_goes_along(palace, derek, dirk):
    old = fact(dirk, "Dirk sails boats")
    change = merge_entities(palace, derek, dirk)
    old.refresh_from_db()
    old.retired_at, old.fate = datetime.now(UTC), Fact.Fate.REFINED
    old.save()
    fact(derek, "Dirk sails small boats", memory=old.memory, recorded_at=datetime.now(UTC))
    undo(palace, change.activity)
    assert held(derek) == []
    assert held(Entity.objects.get(name="Dirk")) == ["Dirk sails small boats"]


def test_a_name_that_is_taken_by_now_is_refused(palace, derek, dirk):
    fact(dirk, "Dirk sails boats")
    change = merge_entities(palace, derek, dirk)
    entity(palace, "Dirk")
    with pytest.raises(BadEntity, match="another “Dirk” now"):
        undo(palace, change.activity)
    assert held(derek) == ["Dirk sails boats"]


def test_what_was_built_on_is_not_pulled_away(palace, derek, dirk):
    fact(dirk, "Dirk sails boats")
    first = merge_entities(palace, derek, dirk)
    second = merge_entities(palace, entity(palace, "Theo"), derek)
    with pytest.raises(BadEntity, match="Undo that first: “Derek” was merged into “Theo”"):
        undo(palace, first.activity)
    undo(palace, second.activity)
    assert undo(palace, first.activity)
    assert held(Entity.objects.get(name="Dirk")) == ["Dirk sails boats"]


def test_an_entity_that_has_nothing_left_does_not_come_back(palace, derek, dirk):
    mention = MentionFactory(entity=dirk)
    change = merge_entities(palace, derek, dirk)
    mention.delete()
    with pytest.raises(BadEntity, match="Nothing of what was merged is left"):
        undo(palace, change.activity)


def test_what_was_purged_is_no_longer_shown(palace, derek, dirk):
    MentionFactory(entity=dirk)
    change = merge_entities(palace, derek, dirk)
    forget_changes(palace, [derek.uuid])
    change.activity.refresh_from_db()
    record = f"{change.activity.summary} {change.activity.detail}"
    assert "Dirk" not in record
    assert "Derek" not in record
    with pytest.raises(BadEntity, match="no longer exists"):
        undo(palace, change.activity)
    forget_changes(palace, [])


def test_what_cannot_be_is_refused_with_a_sentence(palace, derek, dirk):
    others = fact(dirk, "Dirk sails boats")
    with pytest.raises(BadEntity, match="with itself"):
        merge_entities(palace, derek, derek)
    with pytest.raises(BadEntity, match="Nothing would go"):
        split_entity(palace, derek, name="Dee")
    with pytest.raises(BadEntity, match="Not all of these facts"):
        split_entity(palace, derek, name="Dee", facts=[others.uuid])
    with pytest.raises(BadEntity, match="is no other name"):
        split_entity(palace, derek, name="Dee", aliases=["Dirky"])
    with pytest.raises(BadEntity, match="Write a name"):
        split_entity(palace, derek, name=" \n", aliases=["Del"])
    with pytest.raises(BadEntity, match="Choose one of the kinds"):
        split_entity(palace, derek, name="Dee", kind="ghost", aliases=["Del"])
    with pytest.raises(BadEntity, match="has the name “DIRK”"):
        split_entity(palace, derek, name="DIRK", aliases=["Del"])
    record = Activity.objects.create(palace=palace, kind=Activity.Kind.WINGS_MERGED, summary="-")
    with pytest.raises(BadEntity, match="Only merges and splits"):
        undo(palace, record)


def test_a_strangers_entities_are_not_here(palace, derek, dirk, bob):
    theirs = entity(Palace.objects.own(bob), "Dora", aliases=["Do"])
    with pytest.raises(BadEntity, match="no longer exists"):
        merge_entities(palace, derek, theirs)
    with pytest.raises(BadEntity, match="no longer exists"):
        merge_entities(palace, theirs, derek)
    with pytest.raises(BadEntity, match="no longer exists"):
        split_entity(palace, theirs, name="Dee", aliases=["Do"])
    fact(dirk, "Dirk sails boats")
    change = merge_entities(palace, derek, dirk)
    with pytest.raises(BadEntity, match="Only merges and splits"):
        undo(theirs.palace, change.activity)
    assert Entity.objects.filter(palace=theirs.palace).get() == theirs


@pytest.mark.django_db(transaction=True)
def test_merging_and_undoing_at_once_leaves_one_or_two(palace, derek, dirk):
    lives(derek, "Oslo")
    lives(dirk, "Porto", valid_from=MAY)
    at_once(*[lambda: merge_entities(palace, derek, dirk)] * 3)
    assert held(derek) == ["Dirk lives in Porto"]
    change = merge_entities(palace, derek, dirk)
    at_once(*[lambda: undo(palace, change.activity)] * 3)
    assert held(derek) == ["Derek lives in Oslo"]
    assert held(Entity.objects.get(name="Dirk")) == ["Dirk lives in Porto"]
    assert Activity.objects.count() == 2

"""Two names of one, one name of two: what moves, what holds, and what comes back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace.curation.entities import (
    BadEntity,
    forget_changes,
    merge_entities,
    split_entity,
    undo,
)
from palace.facts.candidate import Thing
from palace.facts.entities import entity_for
from palace.models import Activity, Entity, Fact, FactEvent, Mention, Palace
from tests.curation.test_trash import at_once
from tests.factories import EntityFactory, EvidenceFactory, FactFactory, MentionFactory

MARCH, MAY, JULY = (datetime(2024, month, 1, 12, tzinfo=UTC) for month in (3, 5, 7))


def entity(palace, name, **values):
    return EntityFactory(palace=palace, name=name, slug=name.lower(), **values)


def fact(subject, text, **values):
    """A fact with words of its own."""
    values = {"valid_from": MARCH, "recorded_at": MARCH, "object": text.split()[-1], **values}
    made = FactFactory(subject=subject, text=text, **values)
    EvidenceFactory(fact=made)
    return made


def lives(subject, place, **values):
    return fact(subject, f"{subject} lives in {place}", predicate="lives_in", single=True, **values)


@pytest.fixture
def derek(palace):
    return entity(palace, "Derek", aliases=["Del"])


@pytest.fixture
def dirk(palace):
    return entity(palace, "Dirk", aliases=["Dirky"])


def held(subject):
    facts = Fact.objects.within(subject.palace).active().filter(subject=subject)
    return sorted(facts.values_list("text", flat=True))


def so(palace, moment):
    return sorted(Fact.objects.within(palace).true_at(moment).values_list("text", flat=True))


def everything(palace):
    """All that entities have, but for what history adds."""
    rows = Fact.objects.within(palace).active()
    return (
        sorted(Entity.objects.filter(palace=palace).values_list("pk", "uuid", "name", "slug")),
        sorted((one.pk, sorted(one.aliases)) for one in Entity.objects.filter(palace=palace)),
        sorted(
            Mention.objects.filter(palace=palace).values_list("entity", "drawer", "start", "end")
        ),
        sorted(
            (str(one.memory), one.text, one.subject_id, one.object_entity_id or 0,
             str(one.valid_from), str(one.valid_to),
             sorted(one.evidence.values_list("drawer", flat=True)))
            for one in rows
        ),
    )  # fmt: skip


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
    assert change.activity.summary == "“Dirk” is “Derek” now: two entities became one."


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
    with pytest.raises(BadEntity, match="another “Dirk” by now"):
        undo(palace, change.activity)
    assert held(derek) == ["Dirk sails boats"]


def test_what_was_built_on_is_not_pulled_away(palace, derek, dirk):
    fact(dirk, "Dirk sails boats")
    first = merge_entities(palace, derek, dirk)
    second = merge_entities(palace, entity(palace, "Theo"), derek)
    with pytest.raises(BadEntity, match="Undo that first: “Derek” is “Theo” now"):
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


def test_what_was_purged_is_no_longer_told(palace, derek, dirk):
    MentionFactory(entity=dirk)
    change = merge_entities(palace, derek, dirk)
    forget_changes(palace, [derek.uuid])
    change.activity.refresh_from_db()
    told = f"{change.activity.summary} {change.activity.detail}"
    assert "Dirk" not in told
    assert "Derek" not in told
    with pytest.raises(BadEntity, match="not here any more"):
        undo(palace, change.activity)
    forget_changes(palace, [])


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
    with pytest.raises(BadEntity, match="not here any more"):
        undo(palace, change.activity)


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
    with pytest.raises(BadEntity, match="needs a name"):
        split_entity(palace, derek, name=" \n", aliases=["Del"])
    with pytest.raises(BadEntity, match="Choose one of the kinds"):
        split_entity(palace, derek, name="Dee", kind="ghost", aliases=["Del"])
    with pytest.raises(BadEntity, match="goes by the name “DIRK”"):
        split_entity(palace, derek, name="DIRK", aliases=["Del"])
    told = Activity.objects.create(palace=palace, kind=Activity.Kind.WINGS_MERGED, summary="-")
    with pytest.raises(BadEntity, match="Only merges and splits"):
        undo(palace, told)


def test_a_strangers_entities_are_not_here(palace, derek, dirk, bob):
    theirs = entity(Palace.objects.own(bob), "Dora", aliases=["Do"])
    with pytest.raises(BadEntity, match="is not here"):
        merge_entities(palace, derek, theirs)
    with pytest.raises(BadEntity, match="is not here"):
        merge_entities(palace, theirs, derek)
    with pytest.raises(BadEntity, match="is not here"):
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

"""Pets as entities: what is said makes one, and a person of the same name stays a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from language.facts import Thing
from palace.curation.entities import merge_entities, split_entity, undo
from palace.knowledge.facts import entity_for, find_entity
from palace.knowledge.facts.fact_learning import remember
from palace.mining.pipeline import mine_rooms
from palace.models import Entity, Fact, Mention, Room
from tests.factories import DrawerFactory, EntityFactory, FactFactory, MentionFactory
from tests.knowledge.facts.conftest import LONG_AGO


@pytest.fixture
def biscuit(palace):
    return EntityFactory(palace=palace, name="Biscuit", slug="biscuit")


def pet_of(palace, name="Biscuit"):
    return entity_for(palace, Thing(name, "pet"))


def kinds(palace, slug="biscuit"):
    return list(
        Entity.objects.filter(palace=palace, slug=slug).order_by("kind").values_list("kind", flat=1)
    )


def test_a_dog_that_somebody_owns_is_a_pet_with_an_edge(palace):
    remember(palace, "I own a dog called Biscuit.", now=LONG_AGO)
    fact = Fact.objects.get(palace=palace)
    assert (fact.subject.name, fact.predicate) == ("User", "has_pet")
    assert (fact.object_entity.name, fact.object_entity.kind) == ("Biscuit", "pet")


def test_who_has_a_job_is_not_the_cat_of_that_name(palace):
    remember(palace, "I have a cat called Mia.", now=LONG_AGO)
    remember(palace, "Mia works at Google.", now=LONG_AGO)
    remember(palace, "Mia works at Siemens now.", now=LONG_AGO + timedelta(days=9))
    assert kinds(palace, "mia") == ["person", "pet"]
    subjects = Fact.objects.filter(palace=palace, predicate="works_at").values_list("subject__kind")
    assert set(subjects) == {("person",)}
    assert Fact.objects.get(palace=palace, predicate="has_pet").object_entity.kind == "pet"


def test_walking_a_pet_is_a_mention_of_it(palace):
    remember(palace, "I own a dog called Biscuit.", now=LONG_AGO)
    remember(palace, "Long day. I was out walking Biscuit in the rain.", now=LONG_AGO)
    mine_rooms(list(Room.objects.within(palace)))
    assert kinds(palace) == ["pet"]
    assert Mention.objects.filter(palace=palace, entity__slug="biscuit").count() == 2
    assert Fact.objects.get(palace=palace).predicate == "has_pet"


def test_the_same_pet_is_found_again(palace):
    for said in (
        "The dog is called Biscuit.",
        "Right, the dog is called Biscuit.",
        "Biscuit is 3.",
    ):
        remember(palace, said, now=LONG_AGO)
    assert kinds(palace) == ["pet"]
    pet = find_entity(palace, "Biscuit")
    assert pet is not None
    Fact.objects.filter(palace=palace).delete()
    # Nothing stored keeps it from being found: this raised IntegrityError.
    assert pet_of(palace) == pet


def test_who_was_taken_for_a_person_becomes_a_pet_once(palace, biscuit):
    assert pet_of(palace) == biscuit
    biscuit.refresh_from_db()
    assert biscuit.kind == "pet"
    assert entity_for(palace, Thing("Biscuit", "person")) == biscuit
    assert kinds(palace) == ["pet"]


@pytest.mark.parametrize(
    ("predicate", "is_object"),
    [
        ("works_at", False),
        ("lives_in", False),
        ("age", False),
        ("has_sibling", False),
        ("friend_of", True),
        ("married_to", True),
    ],
)
def test_a_person_with_the_name_of_a_pet_stays_one(palace, biscuit, predicate, is_object):
    user = EntityFactory(palace=palace, name="User", slug="user")
    sides = {"subject": user, "object_entity": biscuit} if is_object else {"subject": biscuit}
    FactFactory(predicate=predicate, text="Whatever it says.", **sides)
    pet = pet_of(palace)
    assert pet != biscuit
    assert kinds(palace) == ["person", "pet"]
    assert entity_for(palace, Thing("Biscuit", "person")) == biscuit


def test_whoever_speaks_is_a_person(palace, biscuit):
    MentionFactory(
        entity=biscuit, drawer=DrawerFactory(room__wing__palace=palace, speaker="Biscuit"), end=3
    )
    assert pet_of(palace) != biscuit
    assert kinds(palace) == ["person", "pet"]


@pytest.mark.parametrize(("kind", "becomes_one"), [("item", True), ("place", False)])
def test_a_thing_without_facts_may_be_a_pet_and_a_place_is_none(palace, kind, becomes_one):
    berlin = EntityFactory(palace=palace, name="Berlin", slug="berlin", kind=kind)
    assert (pet_of(palace, "Berlin") == berlin) is becomes_one
    assert kinds(palace, "berlin") == (["pet"] if becomes_one else ["pet", "place"])


def test_a_thing_that_something_is_known_of_is_no_pet(palace, biscuit):
    Entity.objects.filter(pk=biscuit.pk).update(kind="item")
    FactFactory(subject=biscuit, predicate="fuel", text="Biscuit runs on diesel")
    assert pet_of(palace) != biscuit


def test_the_user_is_no_pet(palace):
    user = EntityFactory(palace=palace, name="User", slug="user")
    assert pet_of(palace, "User") != user


def test_a_kind_that_the_owner_chose_stays(palace, biscuit):
    drawer = DrawerFactory(room__wing__palace=palace)
    MentionFactory(entity=biscuit, drawer=drawer, end=3)
    biscuit.kind = "pet"
    biscuit.save()
    change = split_entity(palace, biscuit, name="Bisky", kind="person", drawers=[drawer.uuid])
    assert pet_of(palace, "Bisky") == change.entity
    change.entity.refresh_from_db()
    assert change.entity.kind == "person"


def test_a_merge_that_was_undone_is_not_changed_again(palace, biscuit):
    other = EntityFactory(palace=palace, name="Bisky", slug="bisky")
    undo(palace, merge_entities(palace, biscuit, other).activity)
    assert pet_of(palace) == biscuit
    assert pet_of(palace, "Bisky") == other
    assert not Entity.objects.filter(palace=palace, kind="pet").exists()


def test_a_pet_with_a_new_name_is_a_pet(palace):
    remember(palace, "I own a dog called Rusty.", now=LONG_AGO)
    remember(palace, "Rusty is now called Comet.", now=LONG_AGO + timedelta(days=1))
    fact = Fact.objects.within(palace).active().get(predicate="has_pet")
    assert (fact.object_entity.name, fact.object_entity.kind) == ("Comet", "pet")

"""Pets are beings of their own kind, and only where somebody says that there is one."""

from __future__ import annotations

import pytest

from tests.language.facts.extracted import facts, texts


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("I own a dog called Biscuit", "Biscuit"),
        ("The dog is called Biscuit", "Biscuit"),
        ("We named the dog Rex", "Rex"),
        ("I have a cat named Mia", "Mia"),
        ("I have a pet snake named Kaa", "Kaa"),
        ("My cat Mia is ill", "Mia"),
        ("My cat's name is Mia", "Mia"),
        ("We adopted a kitten called Pip last week", "Pip"),
        ("Rex is our dog", "Rex"),
        ("We got a puppy. Her name is Luna.", "Luna"),
        ("My sister has a dog called Otto", "Otto"),
    ],
)
def test_a_named_pet_is_a_thing_of_its_kind(said, name):
    named = [one.thing for one in facts(said) if one.predicate == "has_pet" and one.thing]
    assert [(thing.name, thing.kind) for thing in named] == [(name, "pet")]


def test_what_is_said_of_a_pet_is_about_a_pet():
    [_, liking] = facts("My rabbit Flopsy loves carrots")
    assert (liking.predicate, liking.subject.name, liking.subject.kind) == (
        "likes",
        "Flopsy",
        "pet",
    )
    [sister, *_] = facts("My sister Anna loves carrots")
    assert sister.thing.kind == "person"


@pytest.mark.parametrize(
    "said",
    [
        "My dog food is called Biscuit",
        "The band is called Cat",
        "I had a dog called Rex",
        "My friend's dog is called Max",
        "If I had a dog I'd call it Max",
        "I want a dog called Rex",
        "I dreamt I had a dog called Rex",
        "The dog in the film is called Lassie",
        "The cat is called Garfield in the comic",
        "The neighbour's cat is called Tom",
        "My dog walker is called Sam",
        "Is the dog called Biscuit?",
        "She has a dog called Rex",
        "My neighbours have a dog. The dog is called Rex.",
        "I saw a dog in the shelter. The dog is called Rex.",
    ],
)
def test_what_only_sounds_like_a_pet_of_mine_is_none(said):
    assert [one.text for one in facts(said) if one.predicate == "has_pet"] == []


def test_walking_somebody_states_nothing():
    assert texts("I'm walking Biscuit") == []

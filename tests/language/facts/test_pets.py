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
        "I have a toy dog called Max",
        "I have a stuffed rabbit called Flopsy",
    ],
)
def test_what_only_sounds_like_a_pet_of_mine_is_none(said):
    assert [one.text for one in facts(said) if one.predicate == "has_pet"] == []


@pytest.mark.parametrize(
    ("said", "owners"),
    [
        ("My sister got a puppy. Her name is Luna.", ["User's sister"] * 2),
        ("My brother got a kitten. We named her Embla.", ["User's brother"] * 2),
        ("I got a puppy. Her name is Luna.", ["User"] * 2),
        ("My sister Anna has a cat called Tom. Tom died yesterday.", ["Anna"] * 2),
        ("My cat is called Tom. Tom ran away.", ["User"] * 2),
    ],
)
def test_a_pet_is_that_of_whoever_was_said_to_have_it(said, owners):
    had = [one for one in facts(said) if one.predicate == "has_pet"]
    assert [one.subject.name for one in had] == owners


def test_a_brother_who_died_was_no_pet():
    said = "My brother Tom is a nurse. Tom died last year."
    assert "Tom, User's brother, died" in texts(said)
    assert [one for one in facts(said) if one.predicate == "has_pet"] == []


def test_walking_somebody_states_nothing():
    assert texts("I'm walking Biscuit") == []

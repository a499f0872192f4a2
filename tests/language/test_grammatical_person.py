"""Facts about the user are read in the second person and stored in the third."""

from __future__ import annotations

import pytest

from language.english.facts.verbs import FORMS, Tense
from language.english.grammatical_person import (
    about_user,
    sentence,
    third,
    to_second_person,
    to_third_person,
)

BOTH_WAYS = [
    ("User lives in Porto", "You live in Porto"),
    ("User is vegetarian", "You are vegetarian"),
    ("User was born in 1989", "You were born in 1989"),
    ("User has a cat named Miso", "You have a cat named Miso"),
    ("User does not smoke", "You do not smoke"),
    ("User no longer owns the Volvo", "You no longer own the Volvo"),
    ("User never flies", "You never fly"),
    ("User usually watches films", "You usually watch films"),
    ("User studies marine biology", "You study marine biology"),
    ("User used to live in Rome", "You used to live in Rome"),
    ("User can juggle", "You can juggle"),
    ("User visited Rome", "You visited Rome"),
    ("User sold their car", "You sold your car"),
    ("User's sister is Ann", "Your sister is Ann"),
    ("User lifeguards in summer", "You lifeguard in summer"),
    ("User doesn't drive", "You don't drive"),
    ("Ben lives in Porto", "Ben lives in Porto"),
    ("User thinks an office is good for User", "You think an office is good for you"),
    (
        "User wants the assistant to not flatter User",
        "You want the assistant to not flatter you",
    ),
    ("User wants the assistant to call User Sam", "You want the assistant to call you Sam"),
    (
        "User wants the assistant to ask User how User really feels when User is ill",
        "You want the assistant to ask you how you really feel when you are ill",
    ),
    ("User's sister dislikes User", "Your sister dislikes you"),
    ("", ""),
]
ONE_WAY = [
    ("User works at Siemens and lives in Munich", "You work at Siemens and live in Munich"),
    ("User likes plays and books on history", "You like plays and books on history"),
    ("Ann is User's sister and likes User", "Ann is your sister and likes you"),
    ("User has a dog, User Authentication", "You have a dog, User Authentication"),
    # Others may be "them".
    ("User thinks dogs are loud and hates them", "You think dogs are loud and hate them"),
    ("User likes Queen and their music", "You like Queen and their music"),
    ("User’s boat is red.", "Your boat is red."),
    ("User smokes.", "You smoke."),
    ("User", "You"),
]


@pytest.mark.parametrize(("stored", "read"), [*BOTH_WAYS, *ONE_WAY])
def test_the_user_is_addressed(stored, read):
    assert to_second_person(stored) == read


@pytest.mark.parametrize(("stored", "read"), BOTH_WAYS)
def test_what_a_reader_writes_is_stored_in_the_third_person(stored, read):
    assert to_third_person(read) == stored


@pytest.mark.parametrize(
    ("stored", "edited", "kept"),
    [
        ("User sent Ben to Ann", "You sent Ben to Mia", "User sent Ben to Mia"),
        ("User put on a coat", "You put on a hat", "User put on a hat"),
        ("User loves their work", "You love your garden", "User loves their garden"),
        ("User lives in Porto", "You live in Porto", "User lives in Porto"),
        ("User likes plays and books", "You like plays", "User likes plays"),
        ("User lives in Porto", "You moved to Berlin", "User moved to Berlin"),
        ("Ann likes tea", "Ann likes coffee", "Ann likes coffee"),
        # A reader may answer "You" with "I".
        ("User lives in Porto", "I live in Berlin", "User lives in Berlin"),
        ("User sent Ben to Ann", "I sent Ben to my sister", "User sent Ben to their sister"),
        (
            "User lives in Porto",
            "I think Porto is good for me",
            "User thinks Porto is good for User",
        ),
        ("User is tall", "I am not tall", "User is not tall"),
        ("User is tall", "I'm small", "User is small"),
        ("User has a dog", "I’ve a cat", "User has a cat"),
        ("User was ill", "I was tired", "User was tired"),
        ("User's tea is Oolong", "My tea is Sencha", "User's tea is Sencha"),
    ],
)
def test_an_edited_sentence_keeps_the_forms_of_the_stored_one(stored, edited, kept):
    assert to_third_person(edited, like=stored) == kept


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("good for me", "good for User"),
        ("give us Python code", "give User Python code"),
        # "User Anna" reads as a name.
        ("paint me Anna", "paint them Anna"),
        ("live in the US", "live in the US"),
        ("when I don't know my way", "when User doesn't know their way"),
        ("like I am five", "like User is five"),
    ],
)
def test_the_speaker_is_named_where_they_might_be_others(said, told):
    assert third(said) == told


@pytest.mark.parametrize("tense", [Tense.PRESENT, Tense.PROGRESSIVE, Tense.PAST, Tense.USED_TO])
@pytest.mark.parametrize("negated", [False, True])
def test_every_verb_that_the_rules_know_goes_there_and_back(tense, negated):
    for verb, (_, past, *_) in FORMS.items():
        if past in FORMS:
            continue
        stored = sentence("User", f"{verb} it", tense=tense, negated=negated, ended=False)
        read = to_second_person(stored)
        assert read.startswith("You "), stored
        assert to_third_person(read) == stored


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("where do I live", "where do User live"),
        ("How old is my father?", "How old is User's father?"),
        ("Do you like it?", "Do User like it?"),
        ("mind the mystery", "mind the mystery"),
    ],
)
def test_a_question_names_the_user_as_facts_do(question, about):
    assert about_user(question) == about

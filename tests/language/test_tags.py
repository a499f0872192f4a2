"""What a message is tagged with: letters, everyday things, and times that are resolved."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.english.topics.tags import things, times
from tests.language.conversations import asked, between, read

SAID = datetime(2024, 5, 8, 15, 30, tzinfo=UTC)  # A Wednesday.


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("We met yesterday.", "2024-05-07"),
        ("Come tomorrow morning.", "2024-05-09"),
        ("I was there last Friday.", "2024-05-03"),
        ("We were away last week.", "2024-04-29/2024-05-05"),
        ("I start next month.", "2024-06"),
        ("We moved last year.", "2023"),
        ("It began March 5th, 2021.", "2021-03-05"),
        ("In the end it was March 2021.", "2021-03"),
        ("I saw her three days ago.", "2024-05-05"),
    ],
)
def test_a_time_is_resolved_against_the_day_of_the_message(text, tag):
    assert times(text, SAID) == (tag,)


@pytest.mark.parametrize("phrase", ["in October", "on Friday", "in two weeks", "every Monday"])
def test_what_may_be_before_or_after_the_message_stays_as_written(phrase):
    assert times(f"We swim {phrase} again.", SAID) == (phrase,)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I finally finished the pottery class.", [("e", "pottery class")]),
        ("My running shoes are worn out.", [("i", "running shoes")]),
        ("Our choir sang at the museum.", [("o", "choir"), ("l", "museum")]),
        ("I called my grandmother.", [("p", "grandmother")]),
        ("The coffee table broke.", [("i", "coffee table")]),
    ],
)
def test_everyday_things_are_found_with_what_belongs_to_them(text, found):
    assert [one for one in things(text) if one in found] == found


@pytest.mark.parametrize(
    "text",
    [
        "Can you book it for me?",
        "A teacher should be patient.",
        "Il gatto dorme sul letto e la pension è piccola, come sempre.",
        "He trips over his own words.",
    ],
)
def test_verbs_anybody_and_other_languages_give_no_things(text):
    assert list(things(text)) == []


def test_a_relative_with_a_name_is_tagged_by_the_name():
    assert ("p", "brother") not in list(things("My brother Tobias came."))


def test_organisations_have_a_letter_of_their_own():
    tags = read(between("Ann", "Bea", "I bought the leash at Petco.", "Petco is great.")).tags
    assert tags[0]["o"] == ("Petco",)
    assert tags[1]["o"] == ("Petco",)


@pytest.mark.parametrize(
    ("text", "letter", "name"),
    [
        ("A colleague in Todmorden sent the stones.", "l", "Todmorden"),
        ("Then Sadhbh wants to live with me.", "p", "Sadhbh"),
        ("We deploy it using Gunicorn on a small machine.", "i", "Gunicorn"),
        ("I ordered the shelf from Brockelmann last week.", "o", "Brockelmann"),
    ],
)
def test_an_unknown_name_is_what_its_sentence_says(text, letter, name):
    assert name in read(asked(text, "I see.")).tags[0].get(letter, ())


@pytest.mark.parametrize("text", ["We took the Ballarat job.", "They say it in Latin in May."])
def test_a_capital_alone_makes_no_name(text):
    tags = read(asked(text, "I see.")).tags[0]
    assert not {"Ballarat", "Latin", "May"} & {name for names in tags.values() for name in names}


def test_an_answer_is_tagged_with_what_people_named():
    tags = read(asked("How do I clean my guitar?", "Wipe the guitar; keep the piano dry.")).tags
    assert tags[1]["i"] == ("guitar",)

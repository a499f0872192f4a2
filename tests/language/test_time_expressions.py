from __future__ import annotations

import pytest

from language.english.topics.tags import times


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I went last Tuesday and again yesterday evening.", ["last Tuesday", "yesterday evening"]),
        ("We met two weeks ago.", ["two weeks ago"]),
        ("Come on March 5th, 2024 or on 6 April.", ["March 5th, 2024", "6 April"]),
        ("It was built in 1987.", ["in 1987"]),
        ("See you next weekend!", ["next weekend"]),
        ("The day after tomorrow, or in three days.", ["The day after tomorrow", "in three days"]),
        ("Due 2024-05-01.", ["2024-05-01"]),
        ("We always swim in summer.", ["in summer"]),
        ("The game is on Saturday.", ["on Saturday"]),
    ],
)
def test_time_expressions_are_found_as_written(text, found):
    assert list(times(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        "You may march on.",
        "Add 200 g of flour and 3 eggs.",
        "The last thing I want is a second job.",
        "Version 2.3.1 of the app.",
        "It may 5 times fail.",
    ],
)
def test_other_numbers_and_words_are_no_times(text):
    assert times(text) == ()


def test_each_is_named_once():
    assert times("today, today and today") == ("today",)

"""Since when, until when, and on which day."""

from __future__ import annotations

import pytest

from tests.language.facts.extracted import SAID_AT, facts


def day(moment):
    return moment and f"{moment:%Y-%m-%d}"


@pytest.mark.parametrize(
    ("said", "since"),
    [
        ("I live in Porto.", None),
        ("I've been working at the city library since last May.", "2025-05-01"),
        ("I've lived in Porto since 2019.", "2019-01-01"),
        ("I moved to Porto in March 2024.", "2024-03-01"),
        ("Last year I moved to Porto.", "2024-01-01"),
        ("I visited Rome yesterday.", "2025-06-09"),
        ("I joined a choir last Tues.", "2025-06-03"),
        ("We fly to Kyoto on the 3rd of November.", "2025-11-03"),
        ("I'm moving to Leeds on Monday.", "2025-06-16"),
        ("I'm flying to Rome on Friday.", "2025-06-13"),
        ("I'm flying to Rome on 8 March.", "2026-03-08"),
        ("My driving test is on 22 July.", "2025-07-22"),
        ("I'm getting married on 14 June 2026!", "2026-06-14"),
    ],
)
def test_since_when(said, since):
    [one] = facts(said)
    assert day(one.valid_from) == since


def test_for_three_years_is_three_years_back():
    [one] = facts("I've lived in Porto for three years.")
    assert day(one.valid_from) == "2022-06-10"


def test_what_used_to_be_so_is_over():
    [one] = facts("I used to live in Rome.")
    assert (one.text, one.valid_from, one.valid_to) == ("User used to live in Rome", None, SAID_AT)


def test_until_when():
    [one] = facts("I'm on a temporary contract at the museum until 30 September 2025.")
    assert (one.predicate, day(one.valid_to)) == ("works_at", "2025-09-30")


def test_every_sunday_is_no_sunday():
    [one] = facts("I go swimming every Sunday.")
    assert (one.text, one.valid_from) == ("User goes swimming every Sunday", None)

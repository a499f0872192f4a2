"""Slugs: which names are the same, and which are not."""

from __future__ import annotations

import itertools

import pytest

from language.slugs import slug_of


@pytest.mark.parametrize(
    "names",
    [
        ["C", "C++", "C#", "C+", "C&A", "CA"],
        [".NET", "Net"],
        ["AT&T", "ATT"],
        ["A+", "A", "A++"],
        ["F", "F#"],
        ["Disney+", "Disney"],
    ],
)
def test_names_that_differ_by_a_telling_sign_are_different(names):
    for one, other in itertools.combinations(names, 2):
        assert slug_of(one) != slug_of(other), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("O’Brien", "OBrien"),
        ("Jean-Luc", "Jean Luc"),
        ("Yahoo!", "Yahoo"),
        ("#general", "general"),
        ("St. Mary", "St Mary"),
        ("R&D", "R and D"),
        ("c++", "C++"),
        ("Luna.", "Luna"),
    ],
)
def test_punctuation_does_not_tell_names_apart(one, other):
    assert slug_of(one) == slug_of(other)


def test_a_name_of_signs_alone_has_a_slug():
    assert slug_of("++")
    assert slug_of("++") != slug_of("##")

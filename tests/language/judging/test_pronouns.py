"""A message that begins with "she": the last conversation names the person."""

from __future__ import annotations

import pytest

from language.english.judging.unresolved import has_pronoun_subject, resolve_pronoun
from tests.language.facts.extracted import facts, known


def resolved(now, *before):
    """The first candidate of a message, about the person that earlier messages name."""
    candidate = facts(now)[0]
    assert has_pronoun_subject(candidate)
    return resolve_pronoun(candidate, [one.fact for one in reversed(known(*before))])


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (
            "My wife Ayaka works at Siemens.",
            "Her new job is at Bosch, much calmer.",
            "Ayaka works at Bosch",
        ),
        ("My sister Freya lives in Aarhus.", "She's moved to Odense.", "Freya lives in Odense"),
        ("My brother Anton lives in Graz.", "He's moved to Rome.", "Anton lives in Rome"),
    ],
)
def test_the_person_of_the_last_conversation(before, now, text):
    candidate = resolved(now, "My sister Eva lives in Ulm. My son Max is nine.", before)
    assert candidate.text == text
    assert candidate.subject.name == text.split()[0]


@pytest.mark.parametrize(
    "before",
    [
        (),
        ("My brother Anton lives in Graz.",),
        ("My dog Bella barks.",),
        ("My sisters Ada and Eva live in Ulm.",),
    ],
)
def test_nobody_where_no_woman_or_more_than_one_was_named(before):
    assert resolved("She lives in Rome now.", *before) is None

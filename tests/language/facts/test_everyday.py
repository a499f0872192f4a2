"""What people type every day, and what looks like it and says nothing."""

from __future__ import annotations

import pytest

from language.english.judging.rules import judge_by_rules
from language.facts import Verdict
from tests.language.facts.extracted import facts, known, texts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("We get paid 20 euros per hour", "User is paid 20 euros per hour"),
        ("I emigrated to Peru", "User lives in Peru"),
        ("I'm dating a girl called Ana", "User dates Ana"),
        ("I switched from Vim to Emacs at work", "User uses Emacs"),
        # What is said is the verb after "start", "stop" and "end up".
        ("I started using Jobscan", "User uses Jobscan"),
        ("I've started going by Wren since January", "User's name is Wren"),
        ("We ended up adopting a cat", "User has a cat"),
        ("I've stopped being a vegetarian", "User no longer is vegetarian"),
        ("I stopped playing the guitar", "User no longer plays the guitar"),
    ],
)
def test_what_is_said_in_everyday_words(said, text):
    assert text in texts(said)


@pytest.mark.parametrize(
    "said",
    [
        "I switched from the train to the bus in York",
        "I stopped working at 5",
    ],
)
def test_what_looks_like_a_fact(said):
    assert [one.text for one in facts(said) if one.predicate] == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I live in Lima", "I emigrated to Canada"),
        ("My girlfriend is Eva", "I'm dating a girl called Ana"),
        ("I earn 15 euros per hour", "We get paid 20 euros per hour"),
        ("I use Vim", "I switched from Vim to Emacs"),
    ],
)
def test_the_new_takes_the_place_of_the_old(before, now):
    verdicts = [judge_by_rules(one, known(before)).verdict for one in facts(now)]
    assert Verdict.UPDATE in verdicts

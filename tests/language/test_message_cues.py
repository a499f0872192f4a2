"""Messages that announce a decision, correct an assistant or touch a sensitive matter."""

from __future__ import annotations

import pytest

from language.english.message_traits import corrects_assistant, decides, is_sensitive, may_decide
from language.english.questions import asks_of_past


@pytest.mark.parametrize(
    ("sentence", "decided"),
    [
        ("We finally settled on the blue tiles.", True),
        ("Let's go with Postgres.", True),
        ("The decision is to wait.", True),
        ("If we decided to move, we would need a van.", False),
        ("They never agreed to it before we decided that.", False),
        ("We painted the kitchen.", False),
    ],
)
def test_decisions(sentence, decided):
    assert decides(sentence) is decided
    assert may_decide(sentence) or not decided


@pytest.mark.parametrize(
    ("message", "corrects"),
    [
        ("No, that's not what I asked.", True),
        ("Stop adding comments.", True),
        ("I already told you: use tabs.", True),
        ("Thanks, that works.", False),
        ("There is no milk left.", False),
    ],
)
def test_corrections_of_the_assistant(message, corrects):
    assert corrects_assistant(message) is corrects


@pytest.mark.parametrize(
    ("text", "sensitive"),
    [
        ("My password is in the drawer.", True),
        ("She paid the invoice by card.", True),
        ("She likes short answers.", False),
    ],
)
def test_sensitive_matters(text, sensitive):
    assert is_sensitive(text) is sensitive


@pytest.mark.parametrize(
    ("question", "past"),
    [
        ("Where did I live before I moved?", True),
        ("What was my old job?", True),
        ("Do I still smoke or not any more?", True),
        ("Where do I live?", False),
    ],
)
def test_questions_about_the_past(question, past):
    assert asks_of_past(question) is past

"""Messages that only ask, only quote, decide, correct an assistant or touch a sensitive matter."""

from __future__ import annotations

import pytest

from language.english.message_traits import (
    corrects_assistant,
    decides,
    is_sensitive,
    may_decide,
    only_asks,
    only_quotes,
    takes_up,
)
from language.english.questions import asks_of_past

QUOTING = """No language model is set, so I can only quote what is in your palace. Closest are:

> I am allergic to nuts\\.  
>
> You, 3 March 2025 [§ W-001/R-02/D-001]

> She has two cats\\.  
> And a dog\\.  
>
> Nora, 3 March 2025 [§ W-001/R-11/D-120]"""  # noqa: W291 - Markdown's line break.


@pytest.mark.parametrize(
    "text",
    [
        "What am I allergic to?",
        "what am i allergic to",
        "Do I have any allergies?",
        "do I have any allergies",
        "Who is my sister?",
        "What’s my sister’s name?",
        "Hi! What am I allergic to?",
        "By the way, how old am I?",
        "In May 2023, where did Dr. Novak live?",
        "In which month did I move?",
        "Hey, do you remember where I live?",
        "Can you tell me when Nora moved?",
        "Tell me what I'm allergic to.",
        "Please remind me where I parked.",
        "I'd like to know when Nora moved.",
        "What was the name of the hotel I booked?",
        "What am I allergic to?\n\nAnd where do I live?",
        "Can you list the towns I lived in, in order? Mention ONLY and ONLY three items.",
        "What's my dog called? Just give the name.",
        "When is Anna's wedding? In one sentence.",
        "Between my red bike and my blue one, which did I buy first?",
        "Of the towns I lived in, which is the oldest?",
    ],
)
def test_what_has_only_questions_states_nothing(text):
    assert only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm allergic to nuts, what can I eat?",
        "I’m allergic to nuts – what can I eat?",
        "What can I eat, I'm allergic to nuts?",
        "What can I eat if I am allergic to nuts?",
        "Where can I eat without nuts, since we are allergic?",
        "Now that I left Siemens, what becomes of my pension?",
        "Did I tell you I moved to Berlin?",
        "Did you know that I moved to Berlin?",
        "Can you believe I got the job?",
        "Which vet is good for my dog Biscuit?",
        "My name is Ann. What is yours?",
        "What should I cook? Use my grandmother's recipe.",
        "Can you help me? Always answer in bullet points.",
        "Is that fine? Three of us live in Ghent.",
        "What now? In May Tom starts at Bosch.",
        "Between us, we moved to Bonn, did you know?",
        "You went to the lake?",
        "When I was young I lived in Berlin.",
        "What a beautiful day it was.",
        "Remember to call Ann.",
        "Nuts.",
        "",
        "?",
        "What is wrong with this line?\n\n    total = count + offset - 1",
        "Why? " + "It rained again in the hills. " * 20,
    ],
)
def test_what_also_states_something_does_not_only_ask(text):
    assert not only_asks(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hmm, so how do I set it up?", True),
        ("Wow! Where was that?", True),
        ("OK cool, what next?", True),
        ("Where was that?", False),
        ("Hi, where was that?", False),
        ("Sofia asks: where was that?", False),
    ],
)
def test_a_question_within_a_talk_takes_up_what_was_said(text, expected):
    assert takes_up(text) is expected


def test_quotations_with_pointers_tell_nothing_new():
    assert only_quotes(QUOTING)
    assert only_quotes(QUOTING.partition("\n\n")[2])


@pytest.mark.parametrize(
    "text",
    [
        f"{QUOTING}\n\nSo you should avoid the cake.",
        "> I am allergic to nuts.\n\nWho said that?",
        "You are allergic to nuts [§ W-001/R-02/D-001].",
        "[§ W-001/R-02/D-001]",
        "",
    ],
)
def test_what_says_more_than_it_quotes_states_something(text):
    assert not only_quotes(text)


@pytest.mark.parametrize(
    "text", ["what is " * 50, "in a " * 80, "a, " * 130, "> [§ W-\n\n" * 20_000]
)
def test_odd_texts_are_read_too(text):
    assert not only_quotes(text)
    assert only_asks(text) in (True, False)


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

"""What hurried people write: without a subject, as a list, in small letters, or with one."""

from __future__ import annotations

import pytest

from tests.language.facts.extracted import facts, texts, triples


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Living in Antwerp at the moment, for context.", "User lives in Antwerp"),
        ("senior dev at Klarna here. regex to match iban?",
         "User works at Klarna as a senior dev"),
        ("Taking citalopram 20mg. Can I have wine?", "User takes citalopram 20mg"),
        ("Not a fan of open plan kitchens.", "User does not like open plan kitchens"),
        ("born 14/11/1988, what's my zodiac sign", "User's birthday is 14/11/1988"),
        ("sold the Polo. bus tips?", "User no longer owns the Polo"),
        ("They pay me 13.50 an hour at the garden centre.", "User is paid 13.50 an hour"),
        ("Six weeks without a cigarette today!!", "User no longer smokes"),
        ("My stepdad's a plumber so he'll do it", "User's stepdad works as a plumber"),
        ("my bf kenji is turning 30, ideas?", "User's bf is Kenji"),
        ("I am 52 years old.", "User is 52 years old"),
        ("I'm on £31,000 in Cardiff.", "User is on £31,000"),
        ("As a trainee solicitor I bill in units.", "User works as a trainee solicitor"),
        ("We live in Ghent, which soap is best for hard water?", "User lives in Ghent"),
    ],
)  # fmt: skip
def test_it_is_understood(said, expected):
    assert expected in texts(said)


def test_a_list_of_who_one_is():
    said = "I'm Tove, 52, nurse in Bergen, divorced, two grown-up sons, learning to sail."
    assert set(triples(said)) == {
        ("User", "name", "Tove"),
        ("User", "age", "52"),
        ("User", "works_as", "nurse"),
        ("User", "lives_in", "Bergen"),
        ("User", "relationship_status", "divorced"),
        ("User", "has_child", "two grown-up sons"),
        ("User", "learns", "sail"),
    }


def test_who_gives_a_name_and_a_trade_is_one_person():
    said = "I'm Thea, a potter, and I need a kiln. My friend Thea is a plumber."
    trades = [triple for triple in triples(said) if triple[1] == "works_as"]
    assert trades == [("User", "works_as", "potter"), ("Thea", "works_as", "plumber")]


@pytest.mark.parametrize(
    "said",
    [
        # A gerund that is the subject, somebody else's list, and tags.
        "Living in Rome is expensive.",
        "Gift for my mum. 62, retired, from Leeds.",
        "I need a hero, lives in a mill.",
        "I live in a flood zone, don't I?",
        "def greet():\n    # I live in Paris and my name is Bob",
        "'I'm 80, I have no kids, I love it here', says my landlady.",
        "I've been selling the eggs to my neighbour.",
        "Yeah I totally love waiting on hold, best day of my life.",
        "I'm planning a trip to the supermarket.",
    ],
)
def test_nothing_is_found(said):
    assert [text for text in texts(said) if "landlady" not in text] == []


def test_acting_as_an_editor_is_no_play():
    said = "Please act as an editor. By the way, I'm from Hungary."
    assert texts(said) == ["User is from Hungary"]


def test_who_a_message_begins_with_may_have_been_named_before():
    [moved] = facts("She's moved to Graz, closer to us.")
    assert (moved.subject.name, moved.predicate, moved.object) == ("She", "lives_in", "Graz")
    # In the middle of a message it is the person named there, or nobody.
    assert texts("What a film. She lives in Graz.") == []


def test_tastes_in_what_has_a_name_are_opinions():
    [loved] = facts("I love TypeScript.")
    [generics] = facts("Generics in TypeScript are a pain.")
    [now] = facts("These days I find TypeScript overhyped, plain js does it for me.")
    of = [(one.subject.name, one.aspect, one.stance) for one in (loved, generics, now)]
    assert of == [
        ("TypeScript", "", "positive"),
        ("TypeScript", "generics", "negative"),
        ("TypeScript", "", "negative"),
    ]


@pytest.mark.parametrize(
    ("said", "text", "aspect"),
    [
        ("English again from now on please.", "User wants the assistant to answer in English",
         "language"),
        ("Please, keep your answers short.", "User wants the assistant to keep your answers short",
         "length"),
        (
            "No bullet points please",
            "User wants the assistant to use no bullet points",
            "bullet points",
        ),
    ],
)  # fmt: skip
def test_an_instruction_has_what_it_is_about(said, text, aspect):
    [one] = facts(said)
    assert (one.text, one.aspect) == (text, aspect)

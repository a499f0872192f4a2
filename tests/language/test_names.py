from __future__ import annotations

import pytest

from language.extraction import KnownEntity
from tests.language.conversations import FRIENDS, PORTO, SHED, asked, between, names, read


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("My sister Ingrid is coming over.", "person", "Ingrid"),
        ("I had lunch with Marcus and he was late.", "person", "Marcus"),
        ("Our new dog is called Pepper.", "pet", "Pepper"),
        ("My cat Minka sleeps all day.", "pet", "Minka"),
        ("My friend's dog is called Max.", "pet", "Max"),
        ("Rex is my dog.", "pet", "Rex"),
        # No pets, although one is close.
        ("My dog food is called Biscuit.", "person", "Biscuit"),
        ("My dog sitter Ann is great.", "person", "Ann"),
        ("The dog Anna adopted is lovely.", "person", "Anna"),
        ("I walked the dog, Anna came along.", "person", "Anna"),
        ("We spent a week in Paris with my cat.", "place", "Paris"),
        ("I read that Amelia Thornbury won the prize.", "person", "Amelia Thornbury"),
        ("We are moving to Freiburg in spring.", "place", "Freiburg"),
        ("They sell it in New Zealand only.", "place", "New Zealand"),
        ("We walked through Hollow Oak Park again.", "place", "Hollow Oak Park"),
        ("I work at Brightwater and like it.", "organisation", "Brightwater"),
        ("She studied at the University of Tartu before.", "organisation", "University of Tartu"),
        ("What do you cook on Thanksgiving?", "event", "Thanksgiving"),
        ("I ran the Riverside Marathon again.", "event", "Riverside Marathon"),
        ("I use PostgreSQL for the shop.", "item", "PostgreSQL"),
        ("My Canon EOS R50 fell into the lake.", "item", "Canon EOS R50"),
        ("My Canon EOS 2.5 fell into the lake.", "item", "Canon EOS 2.5"),
        ('I just finished the novel "The Salt Road" by someone.', "item", "The Salt Road"),
        ("The code name is easy: Project Bluefin starts today.", "project", "Bluefin"),
    ],
)
def test_a_name_is_found_with_its_kind(text, kind, name):
    assert name in names(read(asked(text)), kind)


@pytest.mark.parametrize(
    "text",
    [
        "Great idea! Perfect, I will do that on Monday in March.",
        "Will it rain? May I borrow the car? Grace is what I lack. Hope so.",
        "I'm learning Spanish and English with my Dad.",
        "PLEASE HELP ME FIX THIS RIGHT NOW",
        "Introduction To Modern Marketing For Busy People",
        "Target the right audience, and Nice work on the slides!",
        "The API returns JSON. Tell HR and the CEO.",
    ],
)
def test_capitals_alone_make_no_names(text):
    assert read(asked(text)).entities == ()


def test_people_who_speak_are_found_by_name_and_nickname():
    found = read(FRIENDS)
    nadia = next(entity for entity in found.entities if entity.name == "Nadia")
    assert len(nadia.spans) == 4
    assert names(found, "person") == {"Nadia", "Pip"}
    assert names(found, "pet") == {"Biscuit"}


def test_a_short_form_of_a_speakers_name_is_an_alias():
    window = between("Melanie", "Oskar", "Hi Oskar!", "Hey Mel! How was the trip, Mel?")
    melanie = next(entity for entity in read(window).entities if entity.kind == "person")
    found = {entity.name: entity for entity in read(window).entities}
    assert found["Melanie"].aliases == ("Mel",)
    assert melanie.spans


@pytest.mark.parametrize("speaker", ["Melanie2", "Melanie@work", "Melanie\nSYSTEM: [W-1]"])
def test_a_speakers_handle_does_not_swallow_a_name(speaker):
    window = between(speaker, "Oskar", "Hi Oskar!", "My sister Melanie is coming over.")
    found = {entity.name: entity for entity in read(window).entities}
    assert found["Melanie"].aliases == ()
    assert speaker not in found


def test_first_and_last_names_stand_for_the_whole():
    window = asked("I met Amelia Thornbury. Amelia was kind.", "Amelia Thornbury paints.")
    entities = read(window).entities
    assert [(entity.name, entity.aliases) for entity in entities] == [
        ("Amelia Thornbury", ("Amelia",))
    ]
    assert len(entities[0].spans) == 3


def test_an_assistant_names_nobody_new():
    window = asked("Who could paint my portrait?", "Ask my friend Ingrid from Oslo, or Marcus.")
    assert read(window).entities == ()


def test_what_a_person_named_is_found_in_the_answers_too():
    found = read(PORTO)
    porto = next(entity for entity in found.entities if entity.name == "Porto")
    assert porto.kind == "place"
    douro = next(entity for entity in found.entities if entity.name == "Douro Valley")
    assert {span.turn for span in douro.spans} == {2, 3}


def test_a_known_name_needs_no_evidence():
    window = asked("Quillon called.", "Did he say when he comes?")
    assert read(window).entities == ()
    known = [KnownEntity("person", "Quillon")]
    assert names(read(window, entities=known), "person") == {"Quillon"}


def test_a_known_alias_leads_to_its_entity():
    known = [KnownEntity("person", "Anastasia Weber", ("Stasia",))]
    found = read(asked("Lunch with Stasia was lovely."), entities=known)
    assert [(entity.name, entity.aliases) for entity in found.entities] == [
        ("Anastasia Weber", ("Stasia",))
    ]


def test_a_known_kind_stays():
    known = [KnownEntity("person", "Florence")]
    assert names(read(asked("I wrote to Florence."), entities=known), "person") == {"Florence"}
    assert names(read(asked("I wrote to Florence.")), "place") == {"Florence"}


def test_code_and_addresses_name_nothing():
    text = "See https://example.org/Berlin and `class Berlin` and mail Berlin@example.org please."
    assert read(asked(text)).entities == ()


def test_the_word_is_not_tagged_where_the_name_is():
    window = asked("My friend Will cooks well. Will you ask him? I like Will.")
    (will,) = read(window).entities
    assert [span.start for span in will.spans] == [10, window[0].text.rindex("Will")]


def test_a_person_in_the_middle_of_a_talk_is_found():
    assert names(read(SHED), "person") == {"Tobias"}

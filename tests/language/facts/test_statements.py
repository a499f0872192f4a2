"""What people say of themselves and of those around them."""

from __future__ import annotations

import pytest

from language.english.facts.sentences import READ_CHARS
from tests.language.facts.extracted import facts, texts, triples


def test_a_relative_elsewhere_is_not_what_ails_them():
    assert triples("My sister Nuala in Boston has breast cancer") == [
        ("User", "has_sibling", "Nuala"),
        ("Nuala", "lives_in", "Boston"),
        ("Nuala", "has_condition", "breast cancer"),
    ]


def test_an_age_and_what_follows_go_to_who_was_named():
    assert triples("Imani's my girl, 14. Plays trombone.") == [
        ("User", "has_child", "Imani"),
        ("Imani", "age", "14"),
        ("Imani", "does", "trombone"),
    ]


def test_a_title_makes_a_name_in_small_letters():
    assert texts("mrs colquhoun plays in socks. shes 83") == ["Mrs Colquhoun is 83 years old"]


def test_who_has_what_on_which_days():
    assert triples("I have camogie Thursdays") == [("User", "does", "have camogie Thursdays")]


def test_what_is_a_relatives_is_not_mine():
    said = facts("It is my brother who works at Siemens, not me")
    assert [(one.text, one.negated, one.corrects) for one in said] == [
        ("User's brother works at Siemens", False, False),
        ("User does not work at Siemens", True, True),
    ]


def test_a_job_left_and_the_next_one():
    assert texts("I left Notion, I am now at Linear as a designer") == [
        "User no longer works at Notion",
        "User works at Linear as a designer",
    ]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        # As callers of the fact API write, in the third person already.
        ("User likes Python", "User likes Python"),
        ("User lives in NYC", "User lives in NYC"),
        ("User moved to San Francisco", "User lives in San Francisco"),
        ("User works in tech", "User works in tech"),
        ("User works at Google as a senior engineer", "User works at Google as a senior engineer"),
        ("User is vegetarian", "User is vegetarian"),
        ("User started eating meat again", "User eats meat"),
        # Who they are.
        ("My name is Bob", "User's name is Bob"),
        ("Hi! I'm Priyanka, nice to meet you.", "User's name is Priyanka"),
        ("I'm 34", "User is 34 years old"),
        ("my birthday is on 9 November", "User's birthday is 9 November"),
        ("I'm from a tiny village near Oaxaca.", "User is from a tiny village near Oaxaca"),
        ("Boss is Tonya Beasley over at the district", "User's boss is Tonya Beasley"),
        ("My predecessor was Gareth.", "User's predecessor is Gareth"),
        ("I rang Ruth Adeyemi, our county treasurer.", "Ruth Adeyemi works as a county treasurer"),
        ("Bashir passed his boards on Thursday.", "Bashir passed his boards"),
        # What they never do.
        ("I don't do night calls", "User does not do night calls"),
        ("By the way I don't do night calls any more", "User no longer does night calls"),
        ("i dont eat pork either", "User does not eat pork"),
        ("We play Tuesdays at the Unley club", "User plays Tuesdays at the Unley club"),
        ("I'm on lisinopril", "User takes lisinopril"),
        # What the assistant is not to do.
        (
            "House rule: Latin first, and never begin by telling me what a good question it was",
            "User wants the assistant to never begin by telling User what a good question it was",
        ),
        (
            "When I send you a paragraph, don't correct it.",
            "User wants the assistant to not correct it when User sends a paragraph",
        ),
        (
            "But from now on put the rule number behind every call",
            "User wants the assistant to put the rule number behind every call",
        ),
        ("Don't ask me how I feel", "User wants the assistant to not ask User how User feels"),
        # Where they live, what they have.
        ("I have bought a Vivaro.", "User owns a Vivaro"),
        ("I live in Berlin, do you know a good doctor?", "User lives in Berlin"),
        ("i live in utrecht btw", "User lives in Utrecht"),
        ("I drive an old Volvo estate.", "User drives an old Volvo estate"),
        ("I've got two cats", "User has two cats"),
        ("I've been in Berlin for six years", "User lives in Berlin"),
        ("I've taken a flat in Cobh, from the first of July.", "User lives in Cobh"),
        ("I've bought an orange Subaru Crosstrek.", "User owns an orange Subaru Crosstrek"),
        ("I own a dog called Biscuit", "User has a dog named Biscuit"),
        ("The dog's called Mutex by the way", "User has a dog named Mutex"),
        ("We renamed the boat, it is Albatross now", "User's boat is called Albatross"),
        ("Our boat is called Nutshell.", "User's boat is called Nutshell"),
        # Those around them.
        ("Vern is my colleague.", "User has a colleague named Vern"),
        ("Nina from the choir is a plumber", "Nina from the choir works as a plumber"),
        ("my father is in Leeds", "User's father lives in Leeds"),
        # What they do.
        ("I paint eyes for a living", "User paints eyes"),
        ("I started at Siemens in March", "User works at Siemens"),
        ("Since January I'm principal", "User works as a principal"),
        ("I can do 12 pull-ups", "User can do 12 pull-ups"),
        ("I work at Acme Corp as a data scientist.", "User works at Acme Corp as a data scientist"),
        ("I'm now at BigTech Inc.", "User works at BigTech Inc"),
        ("I've been at Siemens since 2019.", "User works at Siemens"),
        ("my brother is at Bosch", "User's brother works at Bosch"),
        ("I'm no longer at Klarna.", "User no longer works at Klarna"),
        ("I'm a nurse.", "User works as a nurse"),
        ("I'm studying marine biology", "User studies marine biology"),
        ("I'm learning Portuguese with an app", "User learns Portuguese"),
        ("I meditate every morning", "User meditates every morning"),
        # Health.
        ("I'm allergic to peanuts, so no satay", "User is allergic to peanuts"),
        ("I'm allergic to lilies, by the way, so none, please", "User is allergic to lilies"),
        ("I have asthma", "User has asthma"),
        ("I take 50 mg of sertraline", "User takes 50 mg of sertraline"),
        ("I don't smoke", "User does not smoke"),
        ("I don't smoke any more", "User no longer smokes"),
        ("The dentist put me on antibiotics", "User takes antibiotics"),
        ("Ibuprofen gives me hives", "User is allergic to ibuprofen"),
        ("i dont eat pork", "User does not eat pork"),
        ("I have a torn meniscus", "User has a torn meniscus"),
        # Tastes and wishes.
        ("No emojis, please", "User wants the assistant to use no emojis"),
        ("no american spelling for me", "User wants the assistant to use no american spelling"),
        ("Please don't flatter me.", "User wants the assistant to not flatter User"),
        ("Celsius only.", "User wants the assistant to use celsius only"),
        ("Keep your answers short", "User wants the assistant to keep your answers short"),
        ("I prefer PyTorch over TensorFlow.", "User prefers PyTorch over TensorFlow"),
        ("My favourite colour is teal", "User's favourite colour is teal"),
        ("My favorite color is teal", "User's favourite color is teal"),
        ("I can't stand coriander", "User dislikes coriander"),
        ("I don't like onions", "User does not like onions"),
        ("I want to learn to sail", "User wants to learn to sail"),
        ("Always answer in German.", "User wants the assistant to always answer in German"),
    ],
)
def test_a_statement_is_put_in_the_third_person(said, text):
    assert texts(said) == [text]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            "I just moved to Lisbon with my dog",
            [("lives_in", "Lisbon"), ("has_pet", "dog")],
        ),
        (
            "We live in Leeds with our cat and two kids.",
            [("lives_in", "Leeds"), ("has_pet", "cat")],
        ),
        (
            "I have a dog named Rex. I moved to Leeds with my dog.",
            [("has_pet", "Rex"), ("lives_in", "Leeds")],
        ),
        ("I just moved to Lisbon with my friend's dog.", [("lives_in", "Lisbon")]),
        ("I just moved to Lisbon with Ana and her dog.", [("lives_in", "Lisbon")]),
        ("I live in Lisbon with my dog walker.", [("lives_in", "Lisbon")]),
        ("I live in Lisbon with my late dog's ashes.", [("lives_in", "Lisbon")]),
        ("I used to live in Lisbon with my dog.", [("lives_in", "Lisbon")]),
        ("My sister lives in Lisbon with my dog.", [("lives_in", "Lisbon")]),
    ],
)
def test_a_pet_that_lives_with_somebody_is_theirs(said, found):
    assert [(predicate, what) for _, predicate, what in triples(said)] == found


def test_a_list_is_as_many_statements():
    assert triples("I speak Hungarian and German.") == [
        ("User", "speaks", "Hungarian"),
        ("User", "speaks", "German"),
    ]


def test_a_clause_that_leaves_out_its_subject_is_about_the_one_before():
    assert triples("my sister Anna works at IKEA and lives in Porto") == [
        ("User", "has_sibling", "Anna"),
        ("Anna", "works_at", "IKEA"),
        ("Anna", "lives_in", "Porto"),
    ]


def test_who_has_no_name_is_called_by_what_they_are_to_the_speaker():
    assert texts("my brother works at a bakery") == ["User's brother works at a bakery"]


def test_she_is_whom_was_spoken_of_last():
    found = triples("We adopted a dog called Rex last week. He's a golden retriever.")
    assert found == [("User", "has_pet", "Rex"), ("Rex", "is_a", "golden retriever")]


def test_who_speaks_by_name_is_the_subject():
    assert triples("I live in Leeds.", speaker="Tom") == [("Tom", "lives_in", "Leeds")]
    assert triples("I live in Leeds.", speaker="Tom", role="assistant") == [
        ("Tom", "lives_in", "Leeds")
    ]


def test_an_opinion_has_its_subject_its_aspect_and_its_stance():
    [one] = facts("TypeScript generics annoy me")
    assert (one.type, one.subject.name, one.aspect, one.stance) == (
        "opinion",
        "TypeScript",
        "generics",
        "negative",
    )
    [one] = facts("TypeScript is great for big projects")
    assert (one.subject.name, one.aspect, one.stance) == ("TypeScript", "big projects", "positive")


def test_what_no_longer_is_so_is_a_denial():
    [one] = facts("I sold my car in March.")
    assert (one.predicate, one.object, one.negated) == ("owns", "car", True)
    [one] = facts("Captain passed away last night.")
    assert (one.predicate, one.object, one.negated) == ("has_pet", "Captain", True)


def test_taking_back_is_a_correction():
    [one] = facts("Sorry, my name is Ana with one n.")
    assert (one.object, one.corrects) == ("Ana", True)


def test_a_dog_may_have_another_name_by_now():
    assert triples("Rusty is now called Comet") == [("Rusty", "name", "Comet")]


def test_a_single_capital_may_end_a_sentence():
    assert texts("I like C. I like C++. I like C#.") == [
        "User likes C",
        "User likes C++",
        "User likes C#",
    ]


def test_of_a_long_message_no_half_sentence_is_read():
    for before in range(READ_CHARS - 18, READ_CHARS):
        said = "Hm. ".ljust(before - 1, "-") + "\nI like tea with lemon. I like rum."
        assert set(texts(said)) <= {"User likes tea with lemon"}, before
    assert texts("-" * (READ_CHARS - 40) + "\nI like tea. I like rum.") == [
        "User likes tea",
        "User likes rum",
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("My 10k PB is 52:10.", "User's 10k PB is 52:10"),
        ("New 10k PB: 48:31!!", "User's 10k PB is 48:31"),
        ("We've two kids, Theo (7) and Ada (3).", "User has a kid named Ada"),
        ("My neighbour Gert keeps bees.", "Gert, User's neighbour, keeps bees"),
        ("Got engaged to Hannah on Saturday!!", "User is engaged to Hannah"),
        ("Mum's moved in with my brother in Cardiff.", "User's mum lives in Cardiff"),
        ("Feel free to use emojis with me.", "User wants the assistant to use emojis"),
        ("I hate my standing desk.", "User hates their standing desk"),
        ("The missus is a vet.", "User's missus works as a vet"),
        ("My sister's moved to Rome.", "User's sister lives in Rome"),
        ("Assam is my favourite tea, the darker the better.", "User's favourite tea is Assam"),
        ("Teacher here, year 4.", "User works as a teacher"),
        ("vegan here, high protein lunch ideas?", "User is vegan"),
        ("I'm skint. Still a lab technician, still tired.", "User works as a lab technician"),
        ("in my third year of vet school, any tips", "User studies at vet school"),
        ("I vape, mostly evenings.", "User vapes"),
        ("I get migraines.", "User gets migraines"),
        ("Got laid off on Friday.", "User got laid off"),
        ("My marathon best is 3:41.", "User's marathon best is 3:41"),
        ("Opera has grown on me.", "User likes opera"),
        ("My pronouns are they/them, in case it matters.", "User's pronouns are they/them"),
        ("Dog's name is Biscuit, in case I mention him.", "User's dog is named Biscuit"),
        ("We're expecting our first child in May!", "User plans to expect their first child"),
    ],
)
def test_everyday_sentences_are_read(said, told):
    assert told in texts(said)


@pytest.mark.parametrize(
    "said",
    [
        "The teacher here, a bore, shouts.",
        "Mum here, any tips?",
        "Anyone here, by chance?",
        "My dad has a bad leg. Still a vicar, though.",
        "in my third year of running this shop",
        "I get migraines from this code.",
        "I was fired up.",
        "My best is not enough.",
        "It has grown on me.",
        "My beard has grown on me.",
        "I'll bring a coat, in case I live in the tent.",
        "We're expecting a baby boom.",
        "I'm expecting a parcel.",
    ],
)
def test_what_only_looks_like_one_is_not(said):
    assert [text for text in texts(said) if text.startswith("User ")] == []

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from language.english.topics import draft
from language.english.topics.titles import contested
from language.english.topics.wings import is_real_title
from language.extraction import Context
from language.transcripts import Turn
from palace.mining.model_extraction import extract
from tests.conversations import START
from tests.language.conversations import FRIENDS, PORTO, SHED, asked, between, embed, read


@pytest.mark.parametrize(
    "title",
    [
        "Battery wiring",
        "Efoil",
        "Trip to Lisbon 2025",
        "Ann & Bob",
        "税務の質問",
        "Q3 plan",
        "The ferry",
        "Thesis 1",
        "Zen garden",
        "3 recipes",
        "3 mayors",
        "3D printing",
        "90s music",
    ],
)
def test_a_title_that_says_something_is_kept(title):
    assert is_real_title(title)
    assert read(SHED, title=f" {title} ").title == title


@pytest.mark.parametrize(
    "title",
    [
        "",
        "New chat",
        "Untitled conversation",
        "session_3",
        "Session 12",
        "2024-05-01 10:30",
        "2024-05-01T10:30:00Z",
        "2024-05-01 10:30 UTC",
        "8 May 2023",
        "1st of March, evening",
        "10:30am",
        "sharegpt_x7Yk_0",
        "68d4de04-2f1c-4b7a-9d53-0f9f3f4b2a11",
        "42",
        "---",
    ],
)
def test_a_title_that_says_nothing_is_replaced(title):
    assert not is_real_title(title)
    assert read(SHED, title=title).title != title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Can you give me some tips on pruning rose bushes?", "Rose bushes"),
        ("I'm looking for some recommendations for noise-cancelling headphones.", "headphones"),
        ("What are the main causes of coral bleaching, and can it be stopped?", "Coral bleaching"),
        ("Help me plan a trip to Norway with my two kids.", "Trip to Norway"),
        ("Please provide 10 additional slogans for my bicycle repair shop.", "bicycle repair shop"),
        ("How do I write a cover letter for a nursing job?", "Cover letter"),
        ("Which local moving companies would you recommend to me?", "moving companies"),
        ("What were the motivations behind the crusade of 1212?", "crusade"),
        ("How has the role of women in politics changed?", "Role of women in politics"),
        ("Which dishes are there that use barley and leeks?", "barley and leeks"),
        ("I'm baking a cake for my friend's birthday, which flour do I take?", "cake"),
    ],
)
def test_a_question_is_titled_by_its_subject(question, title):
    found = read(asked(question, "Certainly! Here is what I would suggest.")).title
    assert title.lower() in found.lower()
    assert len(found.split()) <= 6


@pytest.mark.parametrize(
    "text",
    [
        "Hey! How are you? Long time no see!",
        "Thanks so much, that was really helpful!",
        "ok cool",
    ],
)
def test_small_talk_is_titled_by_its_first_words(text):
    found = read(asked(text)).title
    assert text.lower().startswith(found.lower()[:3])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```python\nfor row in rows:\n    print(row)\n```", "python for row in rows"),
        ("🎉🎉🎉", "🎉🎉🎉"),
        ("   ", "Conversation"),
    ],
)
def test_what_is_no_english_prose_is_titled_by_its_beginning(text, title):
    found = read(asked(text)).title
    assert found.lower().startswith(title.lower())
    assert len(found) <= 42


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("¿Dónde puedo comprar una bicicleta usada en Valencia?", "Bicicleta usada en Valencia"),
        ("Wie lange muss ich den Teig für das Brot gehen lassen?", "Teig für das Brot"),
        ("怎么做红烧肉？", "做红烧肉"),
    ],
)
def test_a_question_in_another_language_is_titled_in_it(text, title):
    assert read(asked(text)).title == title


@pytest.mark.parametrize("beginning", ["", "а", "аб"])
@pytest.mark.parametrize("character", ["👩🏽‍🚀", "é́", "नि", "😀"])
def test_no_title_ends_within_a_character(beginning, character):
    found = read(asked(beginning + character * 60)).title
    assert (found[len(beginning) :] or character).endswith(character)


@pytest.mark.parametrize(
    "question",
    ["Wait twenty minutes for the paint on the boat to dry?", "Is the boat paint dry in May?"],
)
def test_a_length_of_time_is_no_title(question):
    assert read(asked(question, "It is.")).title.lower() not in ("twenty minutes", "may")


def test_code_does_not_get_into_titles():
    window = asked(
        "My web shop is slow. Here is the code:\n```js\nconst total = cart.reduce(sum, 0);\n```\n"
        "How can I make the shopping cart page load faster?",
        "Load the images of the shopping cart lazily.",
    )
    title = read(window).title.lower()
    assert not {"const", "reduce", "js"} & set(title.split())


def test_a_talk_between_people_is_named_after_what_they_spoke_of():
    extraction = read(FRIENDS)
    assert [topic.first for topic in extraction.topics] == [0, 4]
    assert "pottery" in extraction.topics[0].title.lower()
    assert {"cat", "vet", "biscuit"} & set(extraction.topics[1].title.lower().split())
    assert " and " in extraction.title
    for topic in extraction.topics:
        assert not {"nadia", "philippa", "pip"} & set(topic.title.lower().split())


def test_what_a_picture_shows_is_not_what_people_spoke_of():
    window = [
        replace(turn, text=f"{turn.text} [shared a picture: a photo of a lighthouse and a pier]")
        for turn in FRIENDS
    ]
    title = read(window).title.lower()
    assert "pottery" in title
    assert not {"lighthouse", "pier", "picture", "photo"} & set(title.split())


HIVES = asked(
    "I want to put this month's chores in order before Sunday. Where do I begin?",
    "With what has a date.",
    "Then the bees. My two bee hives weigh little, do I feed them sugar syrup?",
    "Two parts of sugar to one of water.",
    "One of the bee hives is robbed by wasps while I feed it.",
    "Make its entrance smaller.",
    "And when do I treat the bee hives against mites, before or after the syrup?",
    "After the last syrup.",
    "How warm must it be for that, and do the hives need a cover in winter?",
    "Above twelve degrees; a cover keeps the rain off.",
)


def test_what_never_comes_again_does_not_name_a_long_talk():
    assert "hives" in read(HIVES).title.lower()


def test_a_long_conversation_is_named_after_all_of_it():
    chores = asked(
        "Which chores come first in a week like this one, with three dates in it?",
        "Those with a date.",
    )
    vectors = [embed([turn.text for turn in window]) for window in (chores, HIVES)]
    begin, later = map(partial(draft, context=Context()), (chores, HIVES), vectors)
    assert "hives" not in extract(chores, vectors[0], Context(), embed, begin).title.lower()
    whole = replace(begin, later=[later])
    found = extract(chores, vectors[0], Context(), embed, whole)
    assert "hives" in found.title.lower()
    assert "hives" not in found.topics[0].title.lower()


def test_a_project_is_told_apart_by_what_was_done_on_it():
    tracker = asked(
        "I'm building a seed tracker with Flask 2.3. Where do I begin?",
        "With what it must store.",
        "My seed tracker is to know when each seed was sown.",
        "Then give it a date.",
    )
    photos = asked(
        "The photo import takes a minute for each packet, how can it be faster?",
        "Shrink the photos first.",
        "The photo import fails when a packet has two photos.",
        "Then import them one by one.",
    )
    vectors = [embed([turn.text for turn in window]) for window in (tracker, photos)]
    begin, later = map(partial(draft, context=Context()), (tracker, photos), vectors)
    whole = replace(begin, later=[later])
    title = extract(tracker, vectors[0], Context(), embed, whole).title
    assert title == "Seed tracker: photo import"


def test_two_subjects_asked_one_after_the_other_are_two_topics():
    topics = read([*SHED, *PORTO]).topics
    assert [topic.first for topic in topics] == [0, 6]
    assert "porto" in topics[1].title.lower() or "douro" in topics[1].title.lower()


def test_a_short_reply_goes_on_with_the_topic_before():
    window = asked("Thanks, that helps a lot!", "You are welcome.")
    found = read(window, topic="Garden shed insulation", before=tuple(SHED))
    assert [topic.title for topic in found.topics] == ["Garden shed insulation"]


def test_more_of_the_same_goes_on_with_the_topic_before():
    window = asked("Do foam boards rot when the roof leaks?", "No, but wool behind them does.")
    found = read(window, topic="Garden shed insulation", before=tuple(SHED))
    assert [topic.title for topic in found.topics] == ["Garden shed insulation"]


def test_something_else_begins_a_topic_of_its_own():
    window = asked(
        "Which vaccinations does a kitten need in its first year?",
        "Against cat flu and panleukopenia, from eight weeks on.",
    )
    found = read(window, topic="Garden shed insulation", before=tuple(SHED))
    assert found.topics[0].title != "Garden shed insulation"


def test_an_answer_alone_is_titled_by_its_own_words():
    window = [Turn("1", "assistant", "The cruise ships leave from the old harbour.", START)]
    assert "cruise ships" in read(window).title.lower()


def test_a_goodbye_without_function_words_is_still_english():
    goodbye = between("Nadia", "Pip", "Hey Pip, stay safe. Chat soon!", "Bye Nadia, chat soon!")
    title = read([*FRIENDS, *goodbye]).title.lower()
    assert "safe" not in title
    assert "hey" not in title


def test_speakers_are_no_subject():
    window = between("Ann", "Melanie", "Mel! Melanie! Melanie?", "Ann! Ann, Ann.")
    assert read(window).topics[0].title not in ("Mel", "Melanie", "Ann")


def test_what_begins_like_a_name_is_a_subject():
    said = "My new car is a wreck.", "Sell the car!", "The car stays, I love my car.", "Poor car."
    assert "car" in read(between("Caroline", "Ann", *said)).title.lower()


def test_only_phrases_that_may_win_by_their_meaning_are_embedded():
    for window in (SHED, PORTO, FRIENDS):
        for shortlist in draft(window, None, Context()).shortlists:
            scores = [score for score, _ in shortlist]
            assert scores == sorted(scores, reverse=True)
            assert scores[0] - scores[-1] <= (0.5 if window is FRIENDS else 0.3)
            assert len(contested(shortlist)) == (len(shortlist) if len(shortlist) > 1 else 0)
    window = asked("Can you give me some tips on pruning rose bushes?")
    drafted = draft(window, None, Context())
    assert [len(shortlist) for shortlist in drafted.shortlists] == [1]
    assert list(drafted.texts()) == list(drafted.compared)

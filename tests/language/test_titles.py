from __future__ import annotations

import pytest

from language.english.topics import draft
from language.english.topics.titles import contested, is_real_title
from language.extraction import Context
from language.transcripts import Turn
from tests.conversations import START
from tests.language.conversations import FRIENDS, PORTO, SHED, asked, between, read


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
    ],
)
def test_a_question_is_titled_by_its_subject(question, title):
    found = read(asked(question, "Certainly! Here is what I would suggest.")).title
    assert title.lower() in found.lower()
    assert len(found.split()) <= 5


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
        ("¿Dónde puedo comprar una bicicleta usada en Valencia esta semana?", "¿Dónde puedo"),
        ("Wie lange muss ich den Teig für das Brot gehen lassen, damit es luftig wird?", "Wie"),
        ("怎么做红烧肉？需要多长时间？", "怎么做红烧肉"),
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


def test_speakers_are_no_subject():
    window = between("Ann", "Melanie", "Mel! Melanie! Melanie?", "Ann! Ann, Ann.")
    assert read(window).topics[0].title not in ("Mel", "Melanie", "Ann")


def test_only_phrases_that_may_win_by_their_meaning_are_embedded():
    for window in (SHED, PORTO, FRIENDS):
        for shortlist in draft(window, None, Context()).shortlists:
            scores = [score for score, _ in shortlist]
            assert scores == sorted(scores, reverse=True)
            assert scores[0] - scores[-1] <= 0.3
            assert len(contested(shortlist)) == len(shortlist)
    window = asked("Can you give me some tips on pruning rose bushes?")
    drafted = draft(window, None, Context())
    assert [len(shortlist) for shortlist in drafted.shortlists] == [1]
    assert list(drafted.texts()) == list(drafted.compared)

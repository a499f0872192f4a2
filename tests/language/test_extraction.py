from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from language.extraction import Context
from language.transcripts import ROLES, Turn
from llm.errors import EmbedderUnavailable
from palace.mining.model_extraction import extract
from tests.conversations import START
from tests.hypothesis_profiles import examples
from tests.language.conversations import FRIENDS, PORTO, SHED, asked, embed, read

TURNS = st.lists(
    st.builds(
        Turn,
        external_id=st.just("1"),
        role=st.sampled_from(ROLES),
        text=st.text(max_size=200),
        said_at=st.just(START),
        speaker=st.sampled_from(["", "Ann Lee", "user", "José"]),
    ),
    min_size=1,
    max_size=12,
)


def check_it_is_whole(window, extraction):
    assert extraction.topics[0].first == 0
    assert extraction.topics[-1].last == len(window) - 1
    for before, after in zip(extraction.topics, extraction.topics[1:], strict=False):
        assert after.first == before.last + 1
    assert all(topic.title.strip() and len(topic.title) <= 60 for topic in extraction.topics)
    assert extraction.title.strip()
    assert extraction.wing.name
    assert len(extraction.tags) == len(extraction.preferences) == len(window)
    assert all(0 <= preference <= 1 for preference in extraction.preferences)
    for entity in extraction.entities:
        for span in entity.spans:
            written = window[span.turn].text[span.start : span.end]
            assert written in (entity.name, *entity.aliases)


@pytest.mark.parametrize("window", [SHED, PORTO, FRIENDS, SHED[:1], FRIENDS[:2]])
def test_topics_cover_every_turn_and_names_stand_where_they_are_said_to(window):
    check_it_is_whole(window, read(window))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TURNS)
def test_whatever_is_said_something_whole_comes_out(window):
    check_it_is_whole(window, extract(window, None, Context(), embed))


def test_the_same_window_is_always_read_the_same():
    assert read(FRIENDS) == read(FRIENDS)


def test_with_the_embedder_down_words_alone_must_do():
    def unavailable(texts):
        raise EmbedderUnavailable("The embedding model is down; try again later.")

    vectors = embed([turn.text for turn in SHED])
    extraction = extract(SHED, vectors, Context(), unavailable)
    check_it_is_whole(SHED, extraction)
    assert extraction.wing.name == "Home & garden"
    assert extraction.notes == (
        "Topics and wing were found by words alone. The embedding model is down; try again later.",
    )


def test_tags_hold_who_where_and_when_of_each_turn():
    extraction = read(PORTO)
    assert "Porto" in extraction.tags[0]["l"]
    assert "in October" in extraction.tags[0]["t"]
    shed = read(SHED)
    assert shed.tags[2]["p"] == ("Tobias",)
    assert "p" not in shed.tags[0]


def test_a_standing_wish_is_not_a_question():
    extraction = read(
        asked(
            "Please always answer me in metric units, I never use inches.",
            "Understood, metric it is.",
            "How high is the tower in Pisa?",
            "About 56 metres.",
        )
    )
    assert extraction.preferences[0] > extraction.preferences[2]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "A",
        "A. ",
        "Aa ",
        "`",
        "<a",
        "; ",
        "@",
        "a.",
        "= ",
        "\\",
        " ",
        "\n",
        '"',
        "1/",
        "é",
        "''",
    ],
)
def test_a_huge_message_of_whatever_signs_is_read_in_no_time(piece):
    window = asked(f"x@y {{ {piece * 150_000} }}")
    started = time.process_time()
    extract(window, None, Context(), embed)
    assert time.process_time() - started < 3


def test_few_texts_are_embedded():
    spent: list[str] = []

    def counting(texts):
        spent.extend(texts)
        return embed(texts)

    window = SHED * 4
    vectors = embed([turn.text for turn in window])
    extract(window, vectors, Context(), counting)  # Makes the areas' examples, once a process.
    spent.clear()
    extract(window, vectors, Context(), counting)
    assert sum(map(len, spent)) <= 0.1 * sum(len(turn.text) for turn in window)

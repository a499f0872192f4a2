"""Each message once, although every request has the whole conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from api.openai.chat_request import Said, read_history
from api.openai.conversation_matching import (
    MOST_MESSAGES,
    SAME_REQUEST,
    FiledMessage,
    align,
    is_same_opening,
)

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def sent(*texts):
    """By turns the person's and the assistant's; None is a reply without words."""
    roles = ("user", "assistant")
    return read_history(
        [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    )


def kept(*texts, ago=timedelta(minutes=1), cut_off=()):
    roles = ("user", "assistant")
    return [
        FiledMessage(
            place, f"m{place}", Said(roles[place % 2], text), place, NOW - ago, place in cut_off
        )
        for place, text in enumerate(texts)
    ]


def places(history, before):
    return [each.position if each else None for each in align(history, before, NOW)]


def test_a_growing_conversation():
    assert places(sent("Hi", "Hello", "How?"), kept("Hi", "Hello")) == [0, 1, None]


def test_the_same_words_later_are_said_again():
    assert places(sent("Go on", "One", "Go on"), kept("Go on", "One")) == [0, 1, None]


def test_a_program_that_sends_only_the_end():
    before = kept("Go on", "One", "Go on", "Two", "Stop", "Well")
    assert places(sent("Go on", "Two", "Stop", "Well", "Go on"), before) == [2, 3, 4, 5, None]


def test_an_edit_is_new_and_what_follows_is_not():
    before = kept("Salt", "Noted", "Pepper", "Noted too")
    assert places(sent("Sugar", "Noted", "Pepper", "Noted too"), before) == [None, 1, 2, 3]


def test_another_try_says_nothing_new():
    assert places(sent("Hi", "Hello", "How?"), kept("Hi", "Hello", "How?", "So.")) == [0, 1, 2]


def test_blanks_at_the_ends_do_not_make_it_another():
    assert places(sent("Hi", "Hello", "Go"), kept("Hi", " Hello\n")) == [0, 1, None]


def test_of_a_reply_that_broke_off_a_program_may_have_less():
    before = kept("Hi", "Hello, my dear fr", cut_off=(1,))
    assert places(sent("Hi", "Hello, my", "Go"), before) == [0, 1, None]
    assert places(sent("Hi", "Hello, my", "Go"), kept("Hi", "Hello, my dear fr")) == [0, None, None]


def test_a_single_message_is_the_last_one_again_or_a_new_one():
    before = kept("Yes", "One", "No", "Two")
    assert places(sent("No"), before) == [2]
    assert places(sent("Yes"), before) == [None]
    assert places(sent("No"), kept("Yes", "One", "No", "Two", ago=SAME_REQUEST)) == [None]


def test_a_very_long_conversation_grows_like_any_other():
    before = [str(place) for place in range(MOST_MESSAGES)]
    aligned = places(sent(*before[:7], "An edit", *before[8:], "What is new"), kept(*before))
    assert aligned == [*range(7), None, *range(8, MOST_MESSAGES), None]


def test_an_opening_is_the_same_until_the_conversation_goes_on():
    assert is_same_opening(sent("Hi"), kept("Hi", "Hello"), NOW)
    assert not is_same_opening(sent("Hi"), kept("Hi", "Hello", "How?"), NOW)
    assert not is_same_opening(sent("Hi"), kept("Hi", "Hello", ago=SAME_REQUEST), NOW)


def test_instructions_pictures_and_calls_are_not_said():
    history = read_history(
        [
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "name": "Ann",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": "data:,"}},
                    {"type": "text", "text": "here"},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "42"},
        ]
    )
    assert history.said == (Said("user", "Look\nhere", "Ann"), Said("tool", "42"))
    assert (history.answered, history.opening, history.question) == (1, False, "Look\nhere")

"""How far back the model reads."""

from __future__ import annotations

from chat.models import Message
from chat.prompt import MOST_TOKENS, window


def said(*texts):
    return [Message(role="user", text=text) for text in texts]


def test_the_last_messages_come_in_order():
    assert [m.text for m in window(said("c", "b", "a"))] == ["a", "b", "c"]


def test_the_very_last_always_fits():
    long = "word " * MOST_TOKENS
    assert [m.text for m in window(said(long, "before"))] == [long]


def test_it_ends_where_the_tokens_or_the_messages_do(settings):
    half = "word " * (MOST_TOKENS // 2)
    assert len(window(said(half, half, "older"))) == 1
    assert len(window(said(*["short"] * 100))) == settings.CHAT_TURNS == 20


def test_replies_without_a_word_are_left_out():
    assert [m.text for m in window(said("b", "", " ", "a"))] == ["a", "b"]

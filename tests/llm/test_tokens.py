from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm import tokens
from llm.tokens import count_tokens, least_tokens

PROSE = (
    "The ferryman said that the river had been higher in his grandfather's day, when nobody "
    "crossed before May. We sat down to wait, and shared the bread and the last of the pears. "
)


def test_no_text_has_no_tokens_and_any_text_has_some():
    assert count_tokens("") == 0
    assert count_tokens(" ") == 1
    assert count_tokens("a") == 1


def test_prose_is_counted_with_a_margin():
    words = len(PROSE.split())
    assert words * 1.2 < count_tokens(PROSE) < words * 1.8


def test_a_long_text_is_counted_to_its_end():
    assert count_tokens(PROSE * 1000) > 995 * count_tokens(PROSE)


def test_what_wordpiece_cannot_read_is_not_counted_as_one_token():
    noise = base64.b64encode(bytes(range(256)) * 12).decode()
    assert count_tokens(noise) > len(noise) / 4
    assert count_tokens("ประเทศไทยอากาศร้อนมากวันนี้") > 15


def test_lines_count():
    assert count_tokens("a\n" * 50) >= 100


def test_half_a_surrogate_pair_is_counted():
    assert count_tokens("oh \ud83d no") >= 3


@given(st.text())
@example(
    "“It’s §1”—a·b…x’\u0301y \u0301, W-001/R-02]: e_mail@x.org, ça, «naïve», 3€/kg, C\x01D, don't"
)
@example("a\x00 b\x1c c\u2028d\r\ne\tf [UNK] [MASK] \u0301x ประเทศไทย \ud83d 1234567890123456789")
def test_the_sum_of_the_words_is_the_count_of_the_whole(text):
    by_words = count_tokens(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "_sum_of_words", lambda whole: tokens._tokenized([whole])[whole])
        assert count_tokens(text) == by_words


@given(st.lists(st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True)))
@example(["unaffable", "memory", "supercalifragilistic", "a1b2c3", "00000000000000000000", "q"])
@example(PROSE.lower().replace("'", " ").replace(",", " ").replace(".", " ").split())
def test_plain_words_are_split_as_the_tokenizer_splits_them(words):
    assert tokens._counts_of(words) == tokens._tokenized(words)


def test_many_new_words_are_counted_together_and_none_is_kept(monkeypatch):
    text = "\n".join(base64.b64encode(bytes([n, 7 * n % 256])).decode() + " é" for n in range(200))
    word_by_word = count_tokens(text)
    monkeypatch.setattr(tokens, "_word_counts", {})
    monkeypatch.setattr(tokens, "MANY_NEW_WORDS", 50)
    monkeypatch.setattr(tokens, "AT_ONCE", 7)
    assert count_tokens(text) == word_by_word
    assert "é" in tokens._word_counts
    assert len(tokens._word_counts) == 1


def test_words_are_counted_once_and_long_ones_are_not_kept(monkeypatch):
    monkeypatch.setattr(tokens, "_word_counts", {})
    secret = "sk-" + "a1" * 20
    assert count_tokens(f"The key is {secret}") == count_tokens(f"The key is {secret}")
    assert tokens._word_counts.keys() == {"the", "key", "is", "sk"}


@given(st.text())
def test_the_quick_estimate_is_never_above_the_count(text):
    assert least_tokens(text) <= count_tokens(text)


def test_the_quick_estimate_of_prose_is_near():
    assert least_tokens(PROSE) > count_tokens(PROSE) / 2

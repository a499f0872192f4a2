from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from language.analyzer import MAX_TERM_LENGTH, analyze


def test_forms_of_a_word_are_one_term():
    assert len(analyze("battery batteries Battery's BATTERY")) == 1


def test_stopwords_do_not_count():
    assert analyze("It is what it is, and I don't know about that.") == analyze("know")


def test_counts_are_kept():
    assert analyze("wire, wire and Wire")["wire"] == 3


def test_numbers_and_codes_are_terms():
    assert set(analyze("12-AWG, 20Ah at 5:30")) == {"12", "awg", "20ah", "5", "30"}


def test_unspaced_scripts_are_read_in_pairs():
    assert set(analyze("電池の配線")) == {"電池", "池の", "の配", "配線"}


def test_wide_and_plain_letters_are_the_same():
    assert analyze("Ｌｉｓｂｏｎ") == analyze("Lisbon")


@given(st.text())
def test_any_text_has_terms_that_fit_their_column(text):
    assert all(0 < len(term) <= MAX_TERM_LENGTH and "\0" not in term for term in analyze(text))

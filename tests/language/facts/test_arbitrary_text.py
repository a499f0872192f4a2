"""Whatever is said: nothing is raised, and all that is found stands where it is said to stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.english.facts.fact_reading import read_facts
from language.facts import TYPES
from palace.models import Entity
from tests.language.facts.extracted import turns

WORDS = st.sampled_from(
    """I we my User she live lived in Porto work at Acme as a nurse and but since 2019 sister Anna
    dog called Rex love hate TypeScript is great not no longer used to . , ? ! ' " ( ) : ; -
    don't I'm allergic nuts every morning favourite colour teal sorry want learn""".split()
)


def check(found, spoken):
    for one in found:
        assert one.text.strip()
        assert one.object.strip()
        assert one.subject.name.strip()
        assert one.type in TYPES
        assert one.subject.kind in Entity.Kind.values
        assert one.thing is None or one.thing.kind in Entity.Kind.values
        for words in one.words:
            text = spoken[words.turn].text
            assert 0 <= words.start < words.end <= len(text)
            assert text[words.start : words.end].strip()


@given(st.lists(st.text(max_size=200), max_size=3))
def test_of_any_characters(said):
    spoken = turns(*said)
    check(read_facts(spoken), spoken)


@given(st.lists(st.lists(WORDS, max_size=30).map(" ".join), max_size=3))
def test_of_any_words(said):
    spoken = turns(*said)
    check(read_facts(spoken), spoken)


@pytest.mark.parametrize(
    "piece", ["I am ", "my sister ", "'", '"', "I live in Berlin ", "in 2019 ", "I-", "`", "and I "]
)
def test_a_hundred_kilobytes_of_the_same(piece):
    spoken = turns(piece * (100_000 // len(piece)))
    check(read_facts(spoken), spoken)


def test_the_words_are_the_clause_it_rests_on():
    text = "Well, hi!  I’m new here – I live in Porto, and my dog Rex loves it."
    [lives, dog] = read_facts(turns(text))
    assert text[lives.words[0].start : lives.words[0].end] == "I live in Porto"
    assert text[dog.words[0].start : dog.words[0].end] == "my dog Rex loves it"

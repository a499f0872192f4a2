"""What becomes of a learned reader's marks: what is kept of them, names, dates and wording.

The marks are right ones, written by hand; how well a reader finds them is measured elsewhere.
"""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.statements import parse_statement
from language.english.facts.reading import read_facts
from language.english.judging.rules import judge_by_rules
from language.facts import UNRESOLVED, Verdict
from language.reading import Mention, Reading, Span
from language.span_decoding import EVENTS, PREDICATES

from .extracted import known, turns


def read(line, *, score=1.0):
    marked = parse_statement(line)
    values = tuple(replace(value, score=score) for value in marked.reading.values)
    reading = Reading(values, marked.reading.mentions)
    return read_facts(turns(marked.text), readings=[reading])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{my sister Ottilie:1} is now a [roofer|works_as+ 1]!", "works as a roofer"),
        ("Back in [Leiden|lives_in+] after all these years", "User lives in Leiden"),
        ("Doctor put me on [lisinopril|takes+]", "User takes lisinopril"),
        ("turns out [coeliac|has_condition+]", "User is coeliac"),
        ("[Vegan|diet+] since that documentary", "User is vegan"),
        ("[thirty-one|age+] and still on the third floor", "User is thirty-one"),
        ("[14 March|birthday+], in case you bake", "User's birthday is 14 March"),
        ("Down to [84 kg|weight+] at last", "User's weight is 84 kg"),
        ("[Thessaloniki|from+] originally", "User is from Thessaloniki"),
        ("Handed in at [Fennimore|works_at-], so [Quarrystone|works_at+] it is", "Quarrystone"),
        ("Semi-[retired|works_as+] these days", "User is retired"),
    ],
)
def test_a_value_becomes_a_sentence(line, text):
    assert any(text in one.text for one in read(line)), [one.text for one in read(line)]


def test_it_begins_on_the_day_that_the_sentence_names():
    (one,) = read("Off to the north in March 2025: [Aarhus|lives_in+]")
    assert one.valid_from.date() == date(2025, 3, 1)


def test_what_somebody_else_is_is_said_of_them():
    (one,) = read("{Jonna from the allotment:1} got herself to [Aarhus|lives_in+ 1]")
    assert (one.subject.name, one.object) == ("Jonna from the allotment", "Aarhus")


@pytest.mark.parametrize(
    "line",
    [
        "Never been one for [marzipan|dislikes+]",
        "Quite a [night owl|is_a+] me",
        "[answer in Welsh|instruction+] whenever it rains",
        "We [split up|partner- *] in spring",
    ],
)
def test_kinds_that_it_reads_badly_are_left_alone(line):
    assert read(line) == []


def test_only_what_is_sure_is_stated_and_what_may_have_ended_needs_less():
    begins, ends = "Back in [Leiden|lives_in+] after all", "Enough of [Leiden|lives_in-], really"
    assert read(begins, score=0.9)
    assert not read(begins, score=0.89)
    assert read(ends, score=0.3)
    assert not read(ends, score=0.29)


def test_an_ending_names_no_predicate_and_acts_only_where_something_of_that_name_is_known():
    (one,) = read("No more [Corolla|drives-] in the drive, sadly")
    assert (one.predicate, one.object, one.negated) == (UNRESOLVED, "Corolla", True)
    held = known("I drive a Corolla")
    assert judge_by_rules(one, held).verdict is Verdict.DELETE
    assert judge_by_rules(one, known("I drive a Volvo")).verdict is Verdict.NONE
    assert judge_by_rules(one, []).verdict is Verdict.NONE


def test_the_rules_come_first_in_a_sentence():
    line = "I live in [Leiden|works_at+]. [Lisbon|from+] originally"
    found = [(one.predicate, one.object) for one in read(line)]
    assert ("lives_in", "Leiden") in found
    assert ("works_at", "Leiden") not in found


@pytest.mark.parametrize(
    "line",
    [
        "what if it were [Oslo|lives_in+] next?",
        'the letter said "back in [Oslo|lives_in+]"',
        "Write a story about a man in [Oslo|lives_in+]",
        "```\nhome = [Oslo|lives_in+]\n```",
        "> back in [Oslo|lives_in+]",
        "Back in [Oslo|lives_in+]. Just kidding",
    ],
)
def test_marks_on_what_is_not_meant_say_nothing(line):
    assert [one for one in read(line) if one.object == "Oslo"] == []


def test_without_marks_the_rules_read_alone():
    said = turns("I live in Leiden", "My sister Ana works at Siemens", "No more emojis, please")
    assert read_facts(said, readings=[Reading()] * len(said)) == read_facts(said)


@given(text=st.text(max_size=80), data=st.data())
def test_whatever_is_marked_it_never_raises(text, data):
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted)
    subjects = st.none() | places.map(lambda place: Mention(*place))
    spans = st.builds(
        lambda place, predicate, event, subject: Span(*place, predicate, event, subject),
        places,
        st.sampled_from(PREDICATES),
        st.sampled_from(EVENTS),
        subjects,
    )
    values = tuple(data.draw(st.lists(spans, max_size=4)))
    mentions = tuple(one.subject for one in values if one.subject)
    for one in read_facts(turns(text), readings=[Reading(values, mentions)]):
        assert one.text.strip()
        assert all(0 <= at.start <= at.end <= len(text) for at in one.words)

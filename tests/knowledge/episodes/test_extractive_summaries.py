"""Summaries by local rules: sentences of the conversation itself."""

from __future__ import annotations

import pytest

from palace.knowledge.episodes.episode_drawers import Material, Said
from palace.knowledge.episodes.summaries import MOST_SENTENCES, summarise
from tests.conversations import START


def material(*said, **more):
    turns = [one if isinstance(one, Said) else Said("user", "", one) for one in said]
    return Material(turns, len(turns), START, START, **more)


def test_a_summary_is_made_of_sentences_word_for_word():
    texts = [
        "The boiler lost pressure again last night, and it's  8 °C in here!",
        "Ok.",
        "Shall I bleed the radiators first, or call the plumber right away?",
    ]
    lines = summarise(material(*texts)).text.split("\n")
    assert lines == [texts[0], texts[2]]


def test_there_are_few_and_no_sentence_twice():
    texts = [f"We talked about the new roof of the barn, part {n // 2}." for n in range(40)]
    lines = summarise(material(*texts)).text.split("\n")
    assert len(lines) == len(set(lines)) == MOST_SENTENCES


def test_a_sentence_that_was_cut_off_is_not_quoted():
    whole = "The first sentence is all there. "
    said = Said("user", "", whole + "word " * 900, whole=False)
    assert summarise(material(said)).text == whole.strip()


@pytest.mark.parametrize(
    "text",
    [
        "We decided to paint the fence green.",
        "I've finally settled on the oak table.",
        "Ok, let's go with the second draft.",
        "It was agreed that Nora pays the deposit.",
        "I’m going with the blue one.",
    ],
)
def test_what_announces_a_decision_is_one(text):
    assert summarise(material("Good morning to all of you here.", text)).decisions == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "We have not decided on a colour yet.",
        "Have we decided on a colour?",
        "If we decided to paint it, who would help?",
        "I wonder whether we agreed on that.",
        "She said “we decided to paint it”.",
        "I picked",
    ],
)
def test_what_is_open_is_no_decision(text):
    assert [one for one in summarise(material(text)).decisions if "picked" not in one] == []


def test_what_tools_say_is_not_quoted():
    tool = Said("tool", "search", "Decision: the result has three hundred rows of figures.")
    summary = summarise(material("Please look up the rain figures of last May.", tool))
    assert "three hundred" not in summary.text
    assert summary.decisions == ()


@pytest.mark.parametrize("text", ["嗯", "```\ncode()\n```", "x" * 500])
def test_where_no_sentence_will_do_the_beginning_is_shown(text):
    summary = summarise(material(text))
    assert summary.text[:-1] in " ".join(text.split())
    assert 0 < len(summary.text) <= 240

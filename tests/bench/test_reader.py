"""What the reader of facts learns from, how its labels are decoded and how it is measured."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from tokenizers import Tokenizer

from bench.corpus import Person, Stated, Talk
from bench.reader import (
    LABELS,
    PREDICATES,
    TASKS,
    WINDOW_CHARS,
    Judged,
    Mention,
    Reading,
    Span,
    curve,
    fit_confidence,
    judge,
    read_values,
    reliability,
    windows,
)
from bench.reader.examples import (
    CASES,
    BadStatement,
    Marked,
    cases,
    example,
    is_held_out,
    of_people,
    parse_statement,
    read_statements,
    some,
)
from language.transcripts import Transcript, Turn
from llm.embedding import model_build


@pytest.fixture(scope="module")
def tokenizer():
    folder = model_build.ensure_built(settings.MODELS_DIR)
    found = Tokenizer.from_file(str(folder / model_build.TOKENIZER_FILE))
    found.no_padding()
    return found


@pytest.fixture(scope="module")
def statements():
    return list(read_statements())


def test_marks_are_taken_out_and_say_what_is_stated():
    found = parse_statement(
        "{my sister [Ana|has_sibling+]:1} left [Siemens|works_at- 1]. We [quit|does! *]"
    )
    assert found.text == "my sister Ana left Siemens. We quit"
    sister = Mention(0, 13)
    assert found.reading == Reading(
        (
            Span(10, 13, "has_sibling"),
            Span(19, 26, "works_at", "-", sister),
            Span(31, 35, "does", "!", void=True),
        ),
        (sister,),
    )


@pytest.mark.parametrize(
    "line",
    [
        "I am [Ana|name+",
        "I am [Ana",
        "I am [Ana|called+]",
        "I am [Ana|name]",
        "She is [Ana|name+ 2]",
        "{She:1} is [|name+ 1]",
    ],
)
def test_a_mark_that_is_not_in_its_form_is_refused(line):
    with pytest.raises(BadStatement):
        parse_statement(line)


def test_the_statements_are_many_different_and_often_state_nothing(statements):
    assert len({each.text for each in statements}) == len(statements) > 5000
    assert sum(not each.reading.values for each in statements) > len(statements) / 3
    stated = {value.predicate for each in statements for value in each.reading.values}
    assert stated == set(PREDICATES)


def scores_of(found):
    """Scores of which `read_values` should make what the labels were made of."""
    rows = np.zeros((len(found.ids), LABELS), np.float32)
    start = 0
    for task, count in TASKS.items():
        for row, label in enumerate(found.labels[task]):
            rows[row, start + max(int(label), 0)] = 9.0
        start += count
    return rows


def test_what_labels_were_made_of_is_decoded_from_them(statements, tokenizer):
    some_statements = statements[::9]
    same = sum(
        _facts(read(found)) == _facts(found.marked.reading.values)
        for found in (
            example(Marked(each.text, each.reading), tokenizer) for each in some_statements
        )
    )
    assert same > 0.99 * len(some_statements)


def read(found):
    _mentions, values = read_values(scores_of(found), found.places)
    return [span for span, _chances in values]


def _facts(values):
    """Of each place one, as a token has one label."""
    return {
        (value.start, value.end): (value.event, value.void, _place(value.subject))
        for value in reversed(values)
    }


def _place(mention):
    return (mention.start, mention.end) if mention else None


def test_how_a_token_is_written():
    text = "ok Ana NASA 2019 ! İx"
    places = [(0, 0), (0, 2), (3, 6), (7, 11), (12, 16), (17, 18)]
    named = [CASES[number] for number in cases(text, places)]
    assert named == ["small", "small", "title", "capitals", "digits", "other"]


@pytest.mark.parametrize("text", ["", "One.", "First one. " * 200, "no end " * 300, "\n\nA\nB"])
def test_windows_hold_all_of_a_text_in_order(text):
    places = list(windows(text))
    assert "".join(text[start:end] for start, end in places) == text
    assert all(end - start <= WINDOW_CHARS or "." not in text for start, end in places)


def turn(text):
    return Turn("c01.1", "user", text, datetime(2025, 1, 1, tzinfo=UTC), "")


def person(text, *facts):
    transcript = Transcript("corpus", "c01", "", (turn(text),))
    talk = Talk("ana", "train", ("en",), "", {"c01": "journal"}, (transcript,))
    return Person(talk, (), facts)


def test_the_corpus_teaches_values_in_the_words_and_leaves_out_what_is_not_read():
    text = "We moved to Ghent in May. My brother Tom drives a Volvo. Size 43 shoes for me."
    facts = (
        Stated("f1", "c01.1", "We moved to Ghent", "begins", "me", "lives_in", "Ghent"),
        Stated("f2", "c01.1", "Tom drives a Volvo", "begins", "Tom", "drives", "Volvo"),
        Stated("f3", "c01.1", "Size 43 shoes", "begins", "me", "shoe_size", "43"),
        Stated("f4", "c01.1", "moved", "none", why="passing"),
    )
    [marked] = of_people([person(text, *facts)])
    assert [(text[v.start : v.end], v.predicate) for v in marked.reading.values] == [
        ("Ghent", "lives_in"),
        ("Volvo", "drives"),
    ]
    subject = marked.reading.values[1].subject
    assert text[subject.start : subject.end] == "Tom"
    assert [text[start:end] for start, end in marked.unknown] == ["Size 43 shoes"]


def test_other_languages_teach_nothing():
    german = person("Wir sind im Mai nach Gent gezogen und wohnen jetzt dort am Fluss.")
    assert list(of_people([german])) == []


def test_a_tenth_is_left_out_and_a_smaller_share_is_part_of_the_larger(statements):
    left_out = sum(is_held_out(each.text) for each in statements)
    assert 0.08 < left_out / len(statements) < 0.12
    marked = [Marked(each.text, each.reading) for each in statements]
    half, all_ = some(marked, 0.5), some(marked, 1)
    assert 0.45 < len(half) / len(marked) < 0.55
    assert len(all_) == len(marked)
    assert {each.text for each in some(marked, 0.25)} < {each.text for each in half}


def judged(score, *, exact, close):
    return Judged(Span(0, 1, "age", score=score), exact, close)


def test_a_value_is_right_by_its_words_or_by_some_of_them():
    right = parse_statement("I live in [New Ghent|lives_in+] now").reading
    spans = [
        Span(10, 19, "lives_in"),
        Span(14, 19, "lives_in"),
        Span(10, 19, "from"),
        Span(10, 19, "lives_in", "-"),
    ]
    assert [(each.exact, each.close) for each in judge(spans, right)] == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]


def test_the_curve_goes_from_the_surest_on():
    found = [
        judged(0.9, exact=True, close=True),
        judged(0.2, exact=False, close=False),
        judged(0.8, exact=False, close=True),
    ]
    exact, close = (curve(found, 4, exact=kind) for kind in (True, False))
    assert exact["recall_at_precision"]["0.9"] == 0.25
    assert close["recall_at_precision"]["0.9"] == 0.5
    assert (close["f1"], close["threshold"]) == (0.667, 0.8)
    assert close["precision_at_recall"]["0.6"] == 0


def test_confidence_says_how_often_a_value_is_right():
    draw = np.random.default_rng(3)
    chances = [tuple(each) for each in draw.uniform(0.2, 1, (2000, 3))]
    odds = [2 * np.log(value) + np.log(predicate) + 1 for value, predicate, _event in chances]
    right = [draw.uniform() < 1 / (1 + np.exp(-each)) for each in odds]
    found = [
        (judged(0, exact=each, close=each), chance)
        for each, chance in zip(right, chances, strict=True)
    ]
    sure = fit_confidence(found)
    scored = [
        judged(sure.score(chance), exact=each.exact, close=each.close) for each, chance in found
    ]
    assert all(abs(row["score"] - row["right"]) < 0.1 for row in reliability(scored))


def test_training_without_jax_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "bench.reader.training", raising=False)
    with pytest.raises(CommandError, match=r"requirements-training\.lock"):
        call_command("train_reader")

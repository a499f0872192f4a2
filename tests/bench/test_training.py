"""Learning the adapter and the weights: what is planted is found, and each time the same."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from bench.datasets import Question
from bench.metrics import mean
from bench.recall_training import (
    FOLDS,
    KINDS,
    Example,
    Learnt,
    List,
    Pair,
    figures,
    fit_adapter,
    fit_weights,
    folds,
    learn_weights,
)
from bench.runs import drop_schema, schemas
from palace.recall.query import LEARNT_FOLDER, apply_map
from tests.bench.conversations import LOCOMO


def cosine(first, second):
    return float(np.sum(first * second) / (np.linalg.norm(first) * np.linalg.norm(second)))


TRUE = np.array([2, -1, 0.5, 0, 1], np.float32)


def lists(number=300, candidates=20, weights=TRUE, kinds=(), seed=1):
    """Questions whose answer is the candidate that `weights` make the best."""
    draw = np.random.default_rng(seed)
    for _ in range(number):
        values = draw.normal(size=(candidates, len(weights))).astype(np.float32)
        gold = np.arange(candidates) == np.argmax(values @ weights)
        yield List(values, gold, np.array(kinds, np.float32), 1.0)


def test_the_direction_that_makes_the_answers_best_is_found():
    weights, more = fit_weights(list(lists()))
    assert cosine(weights, TRUE) > 0.99
    assert more.shape == (0, len(TRUE))


def test_a_feature_counted_in_other_units_gets_a_weight_in_those():
    plain = list(lists())
    units = np.array([10, 1, 1, 1, 0.1], np.float32)
    stretched = [replace(each, values=each.values * units) for each in plain]
    np.testing.assert_allclose(
        fit_weights(stretched)[0] * units, fit_weights(plain)[0], rtol=0.02, atol=0.01
    )


def test_a_feature_that_is_always_the_same_gets_no_weight():
    constant = [
        replace(each, values=np.c_[each.values, np.full(20, 7, np.float32)]) for each in lists()
    ]
    weights, _ = fit_weights(constant)
    assert weights[-1] == 0
    assert np.isfinite(weights).all()
    assert cosine(weights[:-1], TRUE) > 0.99


def test_what_a_kind_of_question_weighs_otherwise_is_added_for_that_kind():
    other = TRUE * np.array([1, 1, 1, 1, -1], np.float32)
    both = [*lists(kinds=(0, 0)), *lists(100, weights=other, kinds=(1, 0), seed=2)]
    weights, more = fit_weights(both)
    assert weights[4] > 0 > more[0][4]
    assert np.argmax(np.abs(more[0])) == 4
    np.testing.assert_array_equal(more[1], np.zeros(5))


def test_a_feature_that_speaks_for_a_message_gets_no_negative_weight():
    never = np.array([False, True, False, True, False])
    weights, _ = fit_weights(list(lists()), never)
    assert weights[1] == 0
    assert (weights[[0, 2, 4]] > 0).all()


def test_a_question_without_weight_teaches_nothing():
    wrong = [replace(each, weight=0.0) for each in lists(weights=-TRUE, seed=2)]
    assert cosine(fit_weights([*lists(), *wrong])[0], TRUE) > 0.99


def test_weights_come_out_the_same_and_leave_what_they_learn_from_alone():
    material = list(lists())
    before = copy.deepcopy(material)
    first, second = fit_weights(material), fit_weights(material)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(material, before, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.gold, other.gold)


SIZE = 24


@pytest.fixture(scope="module")
def rotation():
    """By some twenty degrees, for any vector."""
    draw = np.random.default_rng(5).normal(scale=0.04, size=(SIZE, SIZE))
    skew, one = draw - draw.T, np.eye(SIZE)
    return (np.linalg.inv(one - skew / 2) @ (one + skew / 2)).astype(np.float32)


def units(draw, number):
    vectors = draw.normal(size=(number, SIZE)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pairs(rotation, number, seed):
    """Each question's answer, the first passage, is where the rotation takes the question.

    The others are as near to the question as it is.
    """
    draw = np.random.default_rng(seed)
    for question in units(draw, number):
        beside = question + 0.4 * units(draw, 10)
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        passages = np.vstack([rotation @ question, beside]).astype(np.float32)
        yield Pair(question, passages, np.array([0]), 1.0)


def test_the_adapter_learns_a_rotation_that_was_planted(rotation):
    turn = fit_adapter(list(pairs(rotation, 3000, seed=1)))
    assert cosine(turn - turn.T, rotation - rotation.T) > 0.9
    unseen = list(pairs(rotation, 200, seed=2))
    plain = mean([float(each.question @ each.passages[0]) for each in unseen])
    aimed = mean([float(apply_map(each.question, turn) @ each.passages[0]) for each in unseen])
    assert plain < aimed
    assert 1 - aimed < 0.5 * (1 - plain)


def test_the_adapter_comes_out_the_same(rotation):
    material = list(pairs(rotation, 100, seed=3))
    np.testing.assert_array_equal(fit_adapter(material), fit_adapter(material))


def test_where_questions_are_where_their_answers_are_nothing_is_turned_away():
    material = list(pairs(np.eye(SIZE, dtype=np.float32), 500, seed=4))
    turn = fit_adapter(material)
    for each in material[:50]:
        assert cosine(apply_map(each.question, turn), each.question) > 0.99


NAMES = ("meaning.best", "words.message", "time.said")


def example(number, *, dataset="talks", person="p", kinds=()):
    """Three messages in two conversations, of which `number` answers."""
    turns = ("a/0", "a/1", "b/0")
    question = Question(
        str(number),
        "",
        "?",
        datetime(2025, 1, 1, tzinfo=UTC),
        frozenset({turns[number]}),
        frozenset({turns[number][0]}),
    )
    values = np.eye(3, dtype=np.float32)[[number, (number + 1) % 3, (number + 2) % 3]].T
    return Example(
        dataset=dataset,
        person=person,
        question=question,
        kinds=kinds,
        names=NAMES,
        values=np.ascontiguousarray(values),
        gold=np.arange(3) == number,
        sessions=("a", "a", "b"),
        turns=turns,
    )


def test_a_score_is_the_weighted_sum_with_what_its_kinds_add():
    weighs = Learnt({"meaning.best": 2.0, "words.message": 1.0}, {"times": {"meaning.best": 0.5}})
    assert weighs.score(example(0), NAMES).tolist() == [2, 1, 0]
    assert weighs.score(example(0, kinds=("times", "names")), NAMES).tolist() == [2.5, 1, 0]


def test_what_is_left_out_is_not_learnt():
    material = [example(number) for number in (0, 1, 2)]
    found = learn_weights(material, NAMES, leave_out=["words.message"])
    assert {"meaning.best", "time.said"} <= found.weights.keys()
    assert "words.message" not in found.weights
    assert list(found.more) == list(KINDS)
    assert all(list(added) == ["meaning.best", "time.said"] for added in found.more.values())


def test_what_was_learnt_puts_the_answer_first():
    material = [example(number, dataset=name) for number in (0, 1, 2) for name in ("talks", "tiny")]
    found = learn_weights(material, NAMES)
    rows = figures((each, found.score(each, NAMES)) for each in material)
    assert rows.keys() == {"talks", "tiny"}
    assert rows["talks"]["session_recall_any@5"] == rows["talks"]["turn_recall@10"] == 1


@dataclass(frozen=True)
class Whose:
    dataset: str
    person: str


def test_of_one_person_all_questions_are_in_one_fold():
    whose = [Whose(name, str(person)) for name in ("a", "b") for person in [*range(7), *range(7)]]
    found = folds(whose)
    assert len(found) == 14
    assert set(found.values()) == set(range(FOLDS))
    assert found["a", "0"] == found["b", "0"] == found["a", "5"]


def people(number):
    """A LoCoMo file of so many people with a talk each."""
    things = ("parrot", "kite", "cello", "lemon tree", "motorbike", "canoe", "telescope")
    for person, thing in zip(range(number), things, strict=False):
        talk = json.dumps(LOCOMO[0]).replace("parrot", thing).replace("Quill", f"Quill{person}")
        yield {**json.loads(talk), "sample_id": f"talk-{person}"}


@pytest.fixture
def talks(tmp_path):
    def write(number):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(list(people(number))))
        return path

    return write


@pytest.fixture
def train(transactional_db, capsys):
    def run(path, **options):
        call_command("train_recall", locomo=path, check=True, **options)
        return json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    yield run
    for name in schemas("train_"):
        drop_schema(name)


def shipped():
    return {path.name: path.read_bytes() for path in sorted(LEARNT_FOLDER.iterdir())}


@pytest.mark.exhaustive
def test_training_is_checked_without_writing_anything(train, talks):
    before = shipped()
    said = train(talks(3))
    assert shipped() == before
    assert said["questions"] == {"locomo": 9}
    assert set(said["data"]) == {"locomo"}
    for of_people in ("of_people_left_out", "of_people_left_out_by_words"):
        assert said[of_people]["locomo"]["session_recall_any@5"] == 1
        assert 0 < said[of_people]["locomo"]["turn_recall@10"] <= 1
    assert train(talks(3)) == said, "What was taken in is used again, and gives the same."


@pytest.mark.exhaustive
def test_there_must_be_people_to_leave_out(train, talks):
    with pytest.raises(CommandError, match="at least two people"):
        train(talks(1))


@pytest.mark.parametrize(
    ("path", "why"), [(None, "Name at least one data set"), ("/nowhere.json", "does not exist")]
)
def test_without_data_nothing_is_learnt(path, why):
    with pytest.raises(CommandError, match=why):
        call_command("train_recall", *([f"--locomo={path}"] if path else []), check=True)


def test_a_file_that_is_no_data_set_is_refused(train, tmp_path):
    path = tmp_path / "odd.json"
    path.write_text('{"a": 1}')
    with pytest.raises(CommandError, match=r"odd\.json"):
        train(path)


def test_the_docs_say_of_which_corpus_each_weights_are():
    corpus = (settings.BASE_DIR / "docs" / "corpus.md").read_text()
    learnt = [json.loads(path.read_text()) for path in LEARNT_FOLDER.glob("*.json")]
    checksums = [
        weights["learnt_from"]["data"]["locibench"]
        for weights in learnt
        if "learnt_from" in weights
    ]
    assert checksums
    assert [each for each in checksums if f"`{each[:12]}`" not in corpus] == []

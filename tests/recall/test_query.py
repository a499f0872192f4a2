"""The adapter turns a question to where its answers are, in the one space it was learnt for."""

from __future__ import annotations

import numpy as np
import pytest

from llm.embedding import embed
from llm.models import Usage
from palace.mining.pipeline import mine
from palace.models import EmbeddingSpace
from palace.recall.query import E5, adapt, apply_map, read_query
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing.spaces import activate, active_space, model_of
from tests.conversations import EVERYTHING, START

MODEL = "all-MiniLM-L6-v2"


def space(provider="local", model=MODEL, dimensions=384):
    return EmbeddingSpace(provider=provider, model=model, dimensions=dimensions)


def some_vectors(number, dimensions=384):
    vectors = np.random.default_rng(3).normal(size=(number, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_question_beside_is_embedded_in_the_same_call(palace):
    def read(text, beside=""):
        return read_query(
            palace, active_space(), text, now=START, as_of=None, by_meaning=True, beside=beside
        )

    own, other = "Where does my aunt live?", "Where does User's aunt in the north live now?"
    both = read(own, other)
    assert Usage.objects.get().tokens_in > 0
    np.testing.assert_allclose(both.vector, read(own).vector, atol=1e-3)
    np.testing.assert_allclose(both.beside[other], read(other).vector, atol=1e-3)
    assert both.beside.keys() == {other}
    assert not read(own, own).beside


def test_what_is_turned_is_another_direction_of_length_one():
    for vector in some_vectors(20):
        adapted = adapt(vector, space())
        assert adapted.dtype == np.float32
        assert np.linalg.norm(adapted) == pytest.approx(1, abs=1e-5)
        assert 0 < vector @ adapted < 0.99999


def test_the_vector_itself_stays_as_it_is():
    [vector] = some_vectors(1)
    before = vector.copy()
    adapt(vector, space())
    np.testing.assert_array_equal(vector, before)


@pytest.mark.parametrize(
    "other",
    [
        space(provider="openai", model="text-embedding-3-small", dimensions=1536),
        space(provider="http://localhost:9/v1"),
        space(provider="openai"),
        space(model="all-MiniLM-L12-v2"),
        space(model=""),
        space(model="../learnt/all-MiniLM-L6-v2"),
    ],
    ids=str,
)
def test_where_nothing_was_learnt_a_question_stays_where_it_is(other):
    [vector] = some_vectors(1, other.dimensions)
    assert adapt(vector, other) is vector


def test_the_same_weights_serve_both_precisions_of_one_model():
    [vector] = some_vectors(1)
    whole, integers = adapt(vector, space()), adapt(vector, space(model=f"{MODEL}-int8"))
    np.testing.assert_array_equal(whole, integers)


def test_nothing_added_is_nothing_turned():
    [vector] = some_vectors(1, 8)
    np.testing.assert_allclose(apply_map(vector, np.zeros((8, 8), np.float32)), vector, atol=1e-6)


def test_what_the_matrix_makes_of_a_vector_is_added_to_it():
    to_the_second = np.array([[0, 0], [1, 0]], np.float32)
    found = apply_map(np.array([1, 0], np.float32), to_the_second)
    np.testing.assert_allclose(found, [np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    np.testing.assert_allclose(apply_map(np.array([0, 1], np.float32), to_the_second), [0, 1])


@pytest.mark.django_db
def test_a_question_has_both_its_own_vector_and_its_aim(palace):
    query = read_query(palace, active_space(), "wires", now=START, as_of=None, by_meaning=True)
    [own] = embed(["wires"], model_of(active_space()), is_question=True)
    np.testing.assert_allclose(query.vector, own, atol=1e-6)
    np.testing.assert_array_equal(query.adapted, adapt(query.vector, active_space()))


@pytest.mark.django_db
def test_what_is_about_nothing_here_stays_unfound_however_it_is_turned(palace):
    """Whether anything is near enough is decided by the question's own vector, not by its aim."""
    for one in EVERYTHING:
        mine(palace, one)
    assert recall(palace, RecallRequest("quantum chromodynamics lattice gauge")).hits == ()


@pytest.fixture
def multilingual_palace(palace):
    made, _ = EmbeddingSpace.objects.get_or_create(provider="local", model=E5, dimensions=384)
    activate(made)
    for one in EVERYTHING:
        mine(palace, one)
    return palace


@pytest.mark.exhaustive
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Welchen Draht hat Derek in Lissabon an seinem Board?", "German"),
        ("Quantum chromodynamics lattice gauge", ""),
        ("Wie schnell fliegt eine unbeladene Schwalbe?", ""),
    ],
)
def test_the_embedder_for_many_languages_has_weights_and_a_floor_of_its_own(
    multilingual_palace, question, language
):
    found = recall(multilingual_palace, RecallRequest(question))
    assert bool(found.hits) == bool(language)

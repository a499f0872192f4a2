"""Large palaces are searched by the bits of their vectors first: what is found must not differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from bench.synthetic_rows import BEGAN, MessageGenerator, fill
from llm.embedding import embed
from palace.curation.purge import empty_trash
from palace.curation.trash import move_to_trash
from palace.models import Drawer, Passage
from palace.recall import semantic
from palace.recall.candidates import BEST_IN_PERIOD, DrawerFilter, find_candidates
from palace.recall.index.corpus_stats import TERMS_A_PASSAGE, read_stats_of
from palace.recall.index.index_loader import INDEX_CACHE, index_of
from palace.recall.index.palace_index import CLOSE_BY_BITS, PalaceIndex, binary_codes
from palace.recall.index.vector_cache import VectorCache, inner_products
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.semantic import MANY_PASSAGES, MOST_PASSAGES, by_meaning
from palace.storage.indexing.spaces import active_space, model_of
from tests.furnished_palaces import furnish

DRAWERS = 2500


@pytest.fixture
def space(db):
    return active_space()


@pytest.fixture
def talk(space):
    return MessageGenerator(space, subjects=40)


@pytest.fixture
def filled(palace, space, talk):
    return furnish(palace, "large", lambda palace: fill(palace, space, talk, DRAWERS))


IN_MEMORY, IN_THE_DATABASE = "signs in memory", "all in the database"


@pytest.fixture(params=[IN_MEMORY, pytest.param(IN_THE_DATABASE, marks=pytest.mark.exhaustive)])
def seems_large(request):
    """As many drawers, but of texts so long that there must be many passages."""
    passages = MANY_PASSAGES if request.param == IN_MEMORY else MOST_PASSAGES

    def seeming(palace):
        corpus_stats = read_stats_of(palace)
        return replace(corpus_stats, total=passages * TERMS_A_PASSAGE)

    yield seeming
    INDEX_CACHE.clear()


@pytest.fixture
def ask(filled, space, talk, seems_large):
    def both():
        [vector] = embed([next(talk.questions())], model_of(space), is_question=True)
        exact = by_meaning(filled, space, vector)
        assert exact.vector_query is None
        by_bits = by_meaning(filled, space, vector, seems_large(filled))
        assert by_bits.vector_query is not None
        return exact, by_bits

    return both


def closest(meaning, number):
    order = np.lexsort((meaning.drawers, -meaning.best))[:number]
    return meaning.drawers[order].tolist()


@pytest.mark.exhaustive
def test_the_closest_are_the_same(ask):
    for _ in range(5):
        exact, by_bits = ask()
        assert len(by_bits.drawers) < len(exact.drawers) == DRAWERS
        assert closest(by_bits, 10) == closest(exact, 10)
        assert len(set(closest(by_bits, 100)) & set(closest(exact, 100))) >= 97


@pytest.mark.exhaustive
def test_what_was_compared_has_its_true_cosine(ask):
    exact, by_bits = ask()
    for column in ("first", "best", "best_passage", "passages"):
        at = exact.at(by_bits.drawers, getattr(exact, column))
        np.testing.assert_allclose(getattr(by_bits, column), at, atol=1e-6)


@pytest.mark.exhaustive
def test_mean_and_spread_are_the_palaces_within_the_error_of_a_sample(ask):
    exact, by_bits = ask()
    assert by_bits.number == exact.number == DRAWERS
    assert by_bits.mean == pytest.approx(exact.mean, abs=0.12 * exact.spread)
    assert by_bits.spread == pytest.approx(exact.spread, rel=0.1)


@pytest.mark.exhaustive
def test_the_same_is_found_each_time(filled, space, talk, seems_large):
    [vector] = embed([next(talk.questions())], model_of(space), is_question=True)
    first, second = (by_meaning(filled, space, vector, seems_large(filled)) for _ in range(2))
    assert (first.mean, first.spread) == (second.mean, second.spread)
    np.testing.assert_array_equal(first.drawers, second.drawers)


@pytest.mark.exhaustive
def test_others_are_compared_when_they_are_looked_at(ask):
    exact, by_bits = ask()
    some = exact.drawers[::7]
    with_some = by_bits.with_all(some)
    np.testing.assert_allclose(
        with_some.at(some, with_some.best), exact.at(some, exact.best), atol=1e-6
    )
    assert (np.diff(with_some.drawers) > 0).all()
    assert exact.with_all(some) is exact


@pytest.mark.exhaustive
def test_what_is_in_the_trash_is_not_found(ask, filled):
    exact, _ = ask()
    # More than are compared exactly, and the closest of all.
    gone = exact.drawers[np.argsort(exact.best)[-CLOSE_BY_BITS - 100 :]]
    Drawer.objects.filter(pk__in=gone.tolist()).update(trashed_at=timezone.now())
    exact, by_bits = ask()
    assert not np.isin(gone, by_bits.drawers).any()
    assert closest(by_bits, 10) == closest(exact, 10)
    assert by_bits.number == DRAWERS - len(gone)


@pytest.mark.exhaustive
def test_passages_that_have_no_vector_yet_are_left_out(ask, filled):
    exact, _ = ask()
    gone = closest(exact, 50)
    Passage.objects.filter(palace=filled, drawer__in=gone).update(embedding=None)
    exact, by_bits = ask()
    assert not np.isin(gone, by_bits.drawers).any()
    assert closest(by_bits, 10) == closest(exact, 10)


@pytest.mark.exhaustive
def test_no_one_elses_are_found(filled, bob, space, talk, seems_large):
    other = type(filled).objects.own(bob)
    fill(other, space, talk, 300)
    [vector] = embed([next(talk.questions())], model_of(space), is_question=True)
    own = set(Drawer.objects.within(other).values_list("pk", flat=True))
    assert set(by_meaning(other, space, vector, seems_large(other)).drawers.tolist()) <= own


@pytest.mark.exhaustive
def test_of_a_named_period_the_closest_are_candidates(filled, space, talk, seems_large):
    month = (BEGAN + timedelta(days=1)).strftime("%B %Y")
    question = read_query(
        filled,
        space,
        f"{next(talk.questions()).rstrip('?')} in {month}?",
        now=BEGAN + timedelta(days=900),
        as_of=None,
        by_meaning=True,
    )
    assert question.time.periods
    words = by_words(filled, ())
    exact = by_meaning(filled, space, question.vector)
    large = by_meaning(filled, space, question.vector, seems_large(filled))
    expected, found = (
        set(find_candidates(filled, question, meaning, words).drawers.tolist())
        for meaning in (exact, large)
    )
    assert len(expected) > BEST_IN_PERIOD
    assert len(found & expected) >= 0.95 * len(expected)


def test_an_empty_palace_has_no_meaning(palace, space, seems_large):
    vector = np.ones(space.dimensions, dtype=np.float32) / space.dimensions**0.5
    assert not len(by_meaning(palace, space, vector, seems_large(palace)).drawers)


@pytest.mark.exhaustive
def test_what_is_in_memory_is_what_the_database_has(filled, space):
    corpus_stats = read_stats_of(filled)
    vectors = index_of(filled, space, corpus_stats).arrays
    codes = index_of(filled, space, corpus_stats, binary=True).arrays
    np.testing.assert_array_equal(codes.passages, vectors.passages)
    np.testing.assert_array_equal(codes.codes, binary_codes(vectors.vectors))
    assert not len(codes.vectors)
    assert not len(vectors.codes)


@pytest.mark.parametrize("dimensions", [3, 64, 100, 384])
def test_signs_are_packed_into_words_whatever_the_dimensions(dimensions):
    rng = np.random.default_rng(dimensions)
    first, second = rng.standard_normal((2, dimensions)).astype(np.float16)
    differing = np.bitwise_count(np.bitwise_xor(*binary_codes(np.stack([first, second]))))
    assert differing.sum() == ((first > 0) != (second > 0)).sum()


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", ["only", "until", "without", "hidden"])
def test_a_filter_is_applied_before_the_best_are_taken(filled, space, talk, seems_large, limit):
    asked = next(talk.questions())
    question = read_query(
        filled, space, asked, now=BEGAN + timedelta(days=900), as_of=None, by_meaning=True
    )
    words = by_words(filled, question.terms)
    exact = by_meaning(filled, space, question.vector)
    large = by_meaning(filled, space, question.vector, seems_large(filled))
    farthest = np.sort(exact.drawers[np.argsort(exact.best)[:5]])
    others = exact.drawers[~np.isin(exact.drawers, farthest)]
    allowed = {
        "only": DrawerFilter(only=farthest),
        "until": DrawerFilter(until=Drawer.objects.order_by("said_at")[4].said_at),
        "without": DrawerFilter(without=others),
        "hidden": DrawerFilter(hidden=others),
    }[limit]
    wanted = set(farthest.tolist())
    if limit == "until":
        wanted = set(Drawer.objects.order_by("said_at").values_list("pk", flat=True)[:5])
    for meaning in (exact, large):
        found = find_candidates(filled, question, meaning, words, allowed=allowed)
        if limit == "without":
            assert set(found.drawers.tolist()) & wanted
        else:
            assert set(found.drawers.tolist()) == wanted


@pytest.fixture
def compared(filled, space, talk):
    """What is compared with a new question, by an index of binary codes in this process."""

    def compare(question=None):
        vector = question
        if vector is None:
            [vector] = embed([next(talk.questions())], model_of(space), is_question=True)
        stats = replace(read_stats_of(filled), total=MANY_PASSAGES * TERMS_A_PASSAGE)
        return by_meaning(filled, space, vector, stats)

    yield compare
    INDEX_CACHE.clear()


def deleted(drawer):
    empty_trash(drawer.palace_id, move_to_trash(drawer).key)


def test_here_and_in_the_database_cosines_are_the_same_to_the_bit(compared, monkeypatch):
    here = compared()
    monkeypatch.setattr(semantic, "MOST_COMPARED_HERE", 0)
    there = compared(here.vector_query.vectors[0])
    for column in ("drawers", "first", "best", "best_passage", "passages"):
        np.testing.assert_array_equal(getattr(here, column), getattr(there, column))


@pytest.mark.parametrize("dimensions", [4, 8, 19, 384, 1028])
def test_products_are_added_in_eight_lanes_whatever_the_dimensions(dimensions):
    draw = np.random.default_rng(5)
    halves = draw.normal(size=(301, dimensions)).astype(np.float16)
    vector = draw.normal(size=dimensions).astype(np.float16).astype(np.float32)
    for row, found in zip(halves, inner_products(halves.view(np.int16), vector), strict=True):
        products = row.astype(np.float32) * vector
        rest = products[dimensions // 8 * 8 :]
        lanes = np.zeros(8, np.float32)
        for place in range(0, dimensions - len(rest), 8):
            lanes = lanes + products[place : place + 8]
        lanes = lanes[:4] + lanes[4:]
        lanes = lanes[:2] + lanes[2:]
        expected = lanes[0] + lanes[1]
        for product in rest:
            expected = expected + product
        assert found == expected


def test_what_was_deleted_amid_a_recall_is_not_compared(compared, filled):
    before = compared()
    others = before.index.keys[~np.isin(before.index.keys, before.drawers)]
    Passage.objects.filter(palace=filled, drawer_id=others[-1]).delete()
    assert others[-1] not in before.with_all(others[-1:]).drawers


def test_vectors_of_what_was_deleted_leave_the_memory(compared, filled):
    before = compared()
    drawer = Drawer.objects.get(pk=before.drawers[np.argmax(before.best)])
    cache = before.index.vector_cache
    [passage] = before.index.passages_of(np.array([drawer.pk]))
    _, vector = cache.look_up(np.array([passage]), before.index.revision)
    deleted(drawer)
    after = compared()
    assert after.index.vector_cache is cache
    assert not (cache._halves[: cache._filled] == vector).all(1).any()


def test_what_was_read_before_a_change_is_not_kept_after_it(compared, filled):
    index = compared().index
    cache = VectorCache(filled.pk, active_space().pk, 384, 100, index.revision)
    [passage, *_] = index.arrays.passages.tolist()
    cache.forget(np.empty(0, np.int64), index.revision + 1)  # It holds nothing yet.
    cache.look_up(np.array([passage]), index.revision)
    assert not len(cache._passages)
    cache.look_up(np.array([passage]), index.revision + 1)
    assert cache._passages.tolist() == [passage]


def test_a_cache_counts_as_long_as_it_is_empty_too(compared):
    index = compared().index
    alone = PalaceIndex(index.arrays).bytes
    empty = VectorCache(1, 1, 384, 100, index.revision)
    assert PalaceIndex(index.arrays, vector_cache=empty).bytes == alone + 2 * 384 * 100


def test_a_full_cache_begins_anew(compared, filled):
    index = compared().index
    cache = VectorCache(filled.pk, active_space().pk, 384, 30, index.revision)
    for first in range(0, 100, 20):
        wanted = index.arrays.passages[first : first + 20]
        found, vectors = cache.look_up(wanted, index.revision)
        assert found.tolist() == wanted.tolist()
        again = cache.look_up(wanted, index.revision)[1]
        np.testing.assert_array_equal(vectors, again)

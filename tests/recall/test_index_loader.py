"""How much of a palace is kept in memory, and that it is right whatever is done."""

from __future__ import annotations

import dataclasses

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm.embedding import embed
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.mining.pipeline import mine
from palace.models import Drawer, Palace, Passage
from palace.recall.index.index_loader import INDEX_CACHE
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.semantic import by_meaning
from palace.storage.indexing.rebuild import fill_missing_vectors
from palace.storage.indexing.spaces import active_space, model_of
from tests.conversations import LISBON, long_transcript
from tests.hypothesis_profiles import examples
from tests.recall.indexes import equals_stored, held, place_of

pytestmark = pytest.mark.usefixtures("empty_index_cache")


# How much of it is kept.


def test_what_was_not_asked_for_longest_makes_room(lived_in, alice, settings):
    others = [Palace.objects.create(owner=alice, subject=name) for name in ("ann", "ben")]
    for other in others:
        mine(other, LISBON)
    settings.RECALL_MEMORY_MB = (held(lived_in).bytes + held(others[0]).bytes + 1000) / 1024**2
    held(lived_in)
    held(others[1])
    assert INDEX_CACHE.find(place_of(others[0])) is None
    assert INDEX_CACHE.find(place_of(lived_in)) is not None
    assert INDEX_CACHE.find(place_of(others[1])) is not None
    assert equals_stored(others[0])


def test_all_that_is_kept_together_stays_within_the_limit(lived_in, alice, settings):
    palaces = [Palace.objects.create(owner=alice, subject=name) for name in ("ann", "ben", "cy")]
    for other in palaces:
        mine(other, LISBON)
    settings.RECALL_MEMORY_MB = 0.05
    kept = []
    for word in ("bread", "wires", "Lisbon", "what did I buy in the spring"):
        for palace in (lived_in, *palaces):
            recall(palace, RecallRequest(word, store_trace=False))
            kept.append(INDEX_CACHE.bytes)
    assert 0 < max(kept) <= 0.05 * 2**20


def test_without_memory_all_is_looked_up_in_the_tables(lived_in, settings):
    settings.RECALL_MEMORY_MB = 0
    space = active_space()
    [vector] = embed(["bread"], model_of(space), is_question=True)
    meaning = by_meaning(lived_in, space, vector)
    assert meaning.index is None
    assert len(meaning.drawers) == Drawer.objects.count()
    assert not len(INDEX_CACHE)


def test_an_index_cannot_be_written_to(lived_in):
    index = held(lived_in)
    for array in (index.arrays.vectors, index.keys, index.said_at, index.arrays.messages):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


# Whatever is done, in whatever order.


def trash_one(palace, number):
    drawers = list(Drawer.objects.within(palace).kept().order_by("pk"))
    if drawers:
        move_to_trash(drawers[number % len(drawers)])


def restore_one(palace, number):
    trashed = list(Drawer.objects.within(palace).trashed().order_by("pk"))
    if trashed:
        restore(palace, Drawer.objects.filter(pk=trashed[number % len(trashed)].pk))


def purge_all(palace, number):
    Purge(palace).run(Drawer.objects.all())


def mine_part(palace, number):
    whole = long_transcript(12, id=f"talk {number % 3}")
    mine(palace, dataclasses.replace(whole, turns=whole.turns[number % 5 :: 1 + number % 2]))


def lose_vector(palace, number):
    keys = list(Passage.objects.filter(palace=palace).values_list("drawer_id", flat=True))
    if keys:
        chosen = keys[number % len(keys)]
        Passage.objects.filter(palace=palace, drawer=chosen).update(embedding=None)


def fill(palace, number):
    fill_missing_vectors()


def rename(palace, number):
    Drawer.objects.within(palace).filter(number=number % 12).update(speaker=f"Ann {number}")


def think_better_of_it(palace, number):
    with transaction.atomic():
        mine_part(palace, number)
        trash_one(palace, number)
        held(palace)
        transaction.set_rollback(True)


DONE = st.sampled_from(
    [
        *(trash_one, restore_one, purge_all, mine_part, mine_part),
        *(lose_vector, fill, rename, think_better_of_it),
    ]
)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(DONE, st.integers(0, 40), st.booleans()), min_size=3, max_size=12))
def test_whatever_is_done_it_says_what_the_tables_say(palace, done):
    with transaction.atomic():
        mine(palace, long_transcript(12, id="talk 0"))
        for do, number, is_asked in done:
            do(palace, number)
            if is_asked:
                assert equals_stored(palace)
        assert equals_stored(palace)
        transaction.set_rollback(True)

"""A palace in memory: it says what the tables say, and keeps up with all that is written."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from django.utils import timezone

from llm.embedding import embed
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.mining.pipeline import mine
from palace.models import Change, Drawer, Palace, Passage, Room
from palace.recall.candidates import find_candidates
from palace.recall.index import index_loader
from palace.recall.index.corpus_stats import TERMS_A_PASSAGE, read_stats_of
from palace.recall.index.index_loader import INDEX_CACHE, index_of
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.semantic import MOST_PASSAGES, by_meaning
from palace.storage.indexing.rebuild import fill_missing_vectors, rebuild_passages, rebuild_postings
from palace.storage.indexing.spaces import active_space, model_of, space_for
from tests.conversations import BATTERY, START, long_transcript, transcript
from tests.recall.indexes import equals_stored, held, place_of

pytestmark = pytest.mark.usefixtures("empty_index_cache")


def is_read_again(palace):
    """Whether the next recall reads the whole palace."""
    before = INDEX_CACHE.find(place_of(palace))
    after = held(palace)
    return before is None or before.arrays.vectors is not after.arrays.vectors


# Recall gets the same in either way.


def large(palace):
    """As if it had too many passages for the memory."""
    return dataclasses.replace(read_stats_of(palace), total=MOST_PASSAGES * TERMS_A_PASSAGE)


QUESTIONS = [
    "Which wire overheated near the shed?",
    'Who said "silicone wire" in March 2025?',
    "What bread did I bake last week?",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("best_each", [4, 200])
@pytest.mark.parametrize("earlier", [False, True])
def test_the_tables_say_the_same(lived_in, question, best_each, earlier):
    long = Drawer.objects.filter(conversation="long")
    long.filter(position__in=[0, 7, 20, 21]).update(trashed_at=timezone.now())
    as_of = long.get(position=15).said_at if earlier else None
    space = active_space()
    query = read_query(lived_in, space, question, now=START, as_of=as_of, by_meaning=True)
    if not query.time.periods:  # What has no vector is no reason to look at it, in a large one.
        Passage.objects.filter(drawer=long.get(position=9)).update(embedding=None)
    words = by_words(lived_in, query.terms)
    both = [
        by_meaning(lived_in, space, query.adapted, corpus_stats, unadapted=query.vector)
        for corpus_stats in (None, large(lived_in))
    ]
    memory, tables = (
        find_candidates(lived_in, query, meaning, words, best_each=best_each) for meaning in both
    )
    assert both[0].index is not None
    assert both[1].index is None
    assert len(memory) or earlier
    # Speakers are numbered as they are read.
    names = {field.name for field in dataclasses.fields(memory) if "voice" not in field.name}
    for name in (*names, "roles", "speakers"):
        ours, theirs = getattr(memory, name), getattr(tables, name)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    for name in ("drawers", "best_passage", "passages"):
        np.testing.assert_array_equal(getattr(both[0], name), getattr(both[1], name))
    for name in ("first", "best", "unadapted"):
        np.testing.assert_allclose(getattr(both[0], name), getattr(both[1], name), atol=2e-6)
    assert both[0].mean == pytest.approx(both[1].mean, abs=1e-6)
    assert both[0].spread == pytest.approx(both[1].spread, abs=1e-6)


def test_a_message_of_several_passages_has_them_all(palace):
    mine(palace, transcript("My boat. " + "It is green and old. " * 300, "Short.", id="long one"))
    space = active_space()
    assert Passage.objects.count() > 4
    [vector] = embed(["a green boat"], model_of(space), is_question=True)
    memory, tables = (
        by_meaning(palace, space, vector, corpus_stats) for corpus_stats in (None, large(palace))
    )
    assert memory.passages.tolist() == tables.passages.tolist() == [Passage.objects.count() - 1, 1]
    assert memory.best_passage.tolist() == tables.best_passage.tolist()
    np.testing.assert_allclose(memory.best, tables.best, atol=2e-6)


def test_the_same_words_are_as_close_wherever_they_lie(palace, monkeypatch):
    monkeypatch.setattr("palace.recall.semantic.BATCH", 7)
    mine(palace, transcript(*["Good night then."] * 40, id="nights"))
    space = active_space()
    [vector] = embed(["When do I sleep?"], model_of(space), is_question=True)
    assert len(set(by_meaning(palace, space, vector).best.tolist())) == 1


# It keeps up with all that is written.


def test_what_was_not_written_to_is_not_read_again(lived_in):
    first = held(lived_in)
    assert held(lived_in) is first
    mine(lived_in, transcript("A new thing.", "And what is that?", id="new"))
    second = held(lived_in)
    assert len(second.keys) == len(first.keys) + 2
    assert equals_stored(lived_in)


def test_a_conversation_that_comes_in_parts_stays_in_order(palace):
    whole = long_transcript(12)
    held(palace)
    for turns in (whole.turns[::2], whole.turns):
        mine(palace, dataclasses.replace(whole, turns=turns))
        assert equals_stored(palace)
    # What was filed first stands between what was filed later.
    assert held(palace).after.tolist() == [6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5, -1]


def test_the_trash_is_not_in_it(lived_in):
    held(lived_in)
    room = Room.objects.get(external_id="long")
    batch = move_to_trash(room)
    assert equals_stored(lived_in)
    assert len(held(lived_in).keys) == Drawer.objects.kept().count()
    restore(lived_in, Drawer.objects.filter(trashed_at=batch.at))
    assert equals_stored(lived_in)


def test_what_is_purged_is_gone_with_the_name_of_who_said_it(lived_in):
    Drawer.objects.filter(conversation="long").update(speaker="Ann of Ely")
    assert any("Ann of Ely" in voice for voice in held(lived_in).arrays.voices)
    move_to_trash(Room.objects.get(external_id="long"))
    Purge(lived_in).run(Drawer.objects.all())
    assert equals_stored(lived_in)
    assert not any("Ann of Ely" in voice for voice in held(lived_in).arrays.voices)


def test_a_purge_is_no_more_changes_than_it_has_statements(lived_in):
    move_to_trash(Room.objects.get(external_id="long"))
    before = Change.objects.count()
    Purge(lived_in).run(Drawer.objects.all())
    # The drawers, and the passages that went with them.
    assert Change.objects.count() == before + 2


def test_vectors_that_come_later_are_there(lived_in):
    Passage.objects.filter(drawer__conversation="long").update(embedding=None)
    lacking = len(held(lived_in).arrays.passages)
    fill_missing_vectors()
    assert equals_stored(lived_in)
    assert len(held(lived_in).arrays.passages) == lacking + 30


def test_what_is_made_again_is_read_again(lived_in):
    held(lived_in)
    Drawer.objects.update(terms=0, traits=0)
    rebuild_postings(lived_in)
    assert equals_stored(lived_in)
    for _ in rebuild_passages(lived_in):
        assert equals_stored(lived_in)
    assert held(lived_in).arrays.messages["terms"].min() > 0


def test_each_space_has_an_index_of_its_own(lived_in):
    old = active_space()
    mine(lived_in, BATTERY)
    other = dataclasses.replace(model_of(old), name="all-MiniLM-L6-v2-int8")
    new = space_for(other)
    corpus_stats = read_stats_of(lived_in)
    assert len(index_of(lived_in, old, corpus_stats).arrays.passages) == Passage.objects.count()
    assert not len(index_of(lived_in, new, corpus_stats).arrays.passages)
    assert len(INDEX_CACHE) == 2


def test_a_palace_is_nobody_elses(lived_in, bob):
    other = Palace.objects.own(bob)
    mine(other, BATTERY)
    keys = set(Drawer.objects.within(other).values_list("pk", flat=True))
    assert set(held(other).keys.tolist()) == keys
    assert not keys & set(held(lived_in).keys.tolist())


def test_many_changes_at_once_are_read_as_a_whole(lived_in, monkeypatch):
    monkeypatch.setattr(index_loader, "MANY_CHANGED", 3)
    held(lived_in)
    Drawer.objects.update(position=0)
    assert is_read_again(lived_in)
    assert equals_stored(lived_in)


def test_of_the_changes_the_last_ones_are_kept(lived_in):
    held(lived_in)
    drawer = Drawer.objects.first()
    for preference in range(70):
        Drawer.objects.filter(pk=drawer.pk).update(preference=preference)
    assert Change.objects.filter(palace=lived_in).count() == 64
    assert is_read_again(lived_in)
    assert equals_stored(lived_in)


def test_a_change_of_too_many_drawers_does_not_name_them(lived_in):
    drawers = Drawer.objects.all()
    template = drawers.first()
    Drawer.objects.bulk_create(
        Drawer(
            palace=lived_in,
            room=template.room,
            number=1000 + number,
            source="plain",
            conversation="bulk",
            external_id=str(number),
            position=number,
            role="user",
            text="One of many.",
            said_at=START,
        )
        for number in range(2001)
    )
    assert Change.objects.filter(palace=lived_in).latest("revision").drawers is None
    assert equals_stored(lived_in)


def test_what_is_written_while_changes_are_read_is_not_missed(lived_in, monkeypatch):
    held(lived_in)
    first, second, *_ = Drawer.objects.order_by("pk")
    Drawer.objects.filter(pk=first.pk).update(preference=0.25)
    read = index_loader._read

    def read_after_another_write(*arguments):
        Drawer.objects.filter(pk=second.pk).update(preference=0.75)
        return read(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(index_loader, "_read", read_after_another_write)
        held(lived_in)
    assert equals_stored(lived_in)
    assert held(lived_in).arrays.messages["preference"][:2].tolist() == [0.25, 0.75]

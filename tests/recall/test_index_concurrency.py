"""A palace in memory beside transactions, other processes and threads."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from bench.runs import own_schema
from bench.synthetic_rows import palace_named
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.mining.pipeline import mine
from palace.models import Change, Drawer, Palace, Passage, Room
from palace.recall.index import index_loader
from palace.recall.index.corpus_stats import read_stats_of
from palace.storage.indexing.rebuild import (
    build_space,
    fill_missing_vectors,
    rebuild_passages,
    rebuild_postings,
)
from palace.storage.indexing.spaces import active_space, model_of, space_for
from palace.storage.transcript_filing import file_transcript
from tests.conversations import BATTERY, long_transcript, transcript
from tests.recall.indexes import contents, equals_stored, held

pytestmark = pytest.mark.usefixtures("empty_index_cache")


@pytest.mark.django_db(transaction=True)
def test_what_another_connection_commits_is_seen_at_once(lived_in):
    held(lived_in)

    def beside():
        mine(lived_in, transcript("Said elsewhere.", id="elsewhere"))
        connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(beside).result()
    assert equals_stored(lived_in)


@pytest.mark.django_db(transaction=True)
def test_what_was_rolled_back_was_never_there(lived_in):
    first = contents(held(lived_in))
    for _ in range(2):
        with transaction.atomic():
            file_transcript(lived_in, transcript("Never said.", id="never"))
            assert equals_stored(lived_in)
            assert contents(held(lived_in)) != first
            transaction.set_rollback(True)
        assert equals_stored(lived_in)
        assert contents(held(lived_in)) == first


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_within_a_transaction_was_never_there(lived_in):
    with transaction.atomic():
        file_transcript(lived_in, transcript("Said.", id="said"))
        first = contents(held(lived_in))
        with transaction.atomic():
            file_transcript(lived_in, transcript("Never said.", id="never"))
            held(lived_in)
            transaction.set_rollback(True)
        assert contents(held(lived_in)) == first
    assert equals_stored(lived_in)


@pytest.mark.django_db(transaction=True)
def test_nobody_sees_what_another_has_not_committed(lived_in):
    first = contents(held(lived_in))

    def beside():
        try:
            return contents(held(lived_in))
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        file_transcript(lived_in, transcript("Not yet.", id="not yet"))
        assert contents(held(lived_in)) != first
        assert other.submit(beside).result() == first
        assert contents(held(lived_in)) != first
    assert other is not None
    assert equals_stored(lived_in)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_one_reads(lived_in, monkeypatch):
    read = []
    whole = index_loader.load_index
    monkeypatch.setattr(
        index_loader, "load_index", lambda place: read.append(place) or whole(place)
    )

    def ask(_):
        try:
            return held(lived_in)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        indexes = list(threads.map(ask, range(8)))
    assert len(read) == 1
    assert len(set(map(id, indexes))) == 1


def trash_and_restore(palace):
    for room in Room.objects.order_by("pk"):
        batch = move_to_trash(room)
        restore(palace, Drawer.objects.filter(trashed_at=batch.at))


def embed_again(palace):
    with transaction.atomic():
        palace.lock()
        Passage.objects.filter(drawer__conversation="long").update(embedding=None)
    fill_missing_vectors()


def mine_more(palace):
    for number in range(8):
        mine(palace, long_transcript(30 + number))


def build_another_space(palace):
    model = dataclasses.replace(model_of(active_space()), name="all-MiniLM-L6-v2-int8")
    list(build_space(space_for(model)))


def recreate(palace):
    rebuild_postings(palace)
    list(rebuild_passages(palace))


def throw_away(palace):
    for drawer in Drawer.objects.filter(conversation="long", position__gte=25):
        move_to_trash(drawer)
        Purge(palace).run(Drawer.objects.filter(pk=drawer.pk))


def ask(palace):
    for _ in range(20):
        held(palace)


@pytest.mark.django_db(transaction=True)
def test_those_who_write_at_once_do_not_wait_for_each_other_for_ever(lived_in):
    """Each of them writes to drawers or passages of one palace in an order of its own."""
    jobs = [
        *(trash_and_restore, embed_again, mine_more, build_another_space),
        *(recreate, throw_away, ask, ask),
    ]

    def run(job):
        try:
            job(lived_in)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as threads:
        for done in [threads.submit(run, job) for job in jobs]:
            done.result(120)
    assert equals_stored(lived_in)


@pytest.mark.django_db(transaction=True)
def test_a_palace_that_is_deleted_leaves_no_changes(lived_in, bob):
    other = Palace.objects.own(bob)
    mine(other, BATTERY)
    held(lived_in)
    lived_in.owner.delete()
    assert not Change.objects.exclude(palace=other).exists()
    assert not len(held(lived_in).keys)
    assert equals_stored(other)


def test_rows_loaded_without_triggers_are_noted_too(lived_in):
    held(lived_in)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Drawer.objects.filter(conversation="long").update(preference=0.5)
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert equals_stored(lived_in)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_a_schema_made_again_under_the_same_name_is_another(db):
    said = []
    for text in ("The first one.", "Quite another."):
        with own_schema("test_atlas", keep=False):
            there = palace_named("somebody")
            mine(there, transcript(text, id="talk"))
            index = held(there)
            said.append((read_stats_of(there).revision, index.arrays.vectors.tolist()))
            assert equals_stored(there)
    assert said[0][0] == said[1][0]
    assert said[0][1] != said[1][1]

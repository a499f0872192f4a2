from __future__ import annotations

import threading

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from palace.mining.pipeline import mine
from palace.models import Drawer, Passage, Posting
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing import postings
from palace.storage.indexing.rebuild import rebuild_postings
from tests.conversations import EVERYTHING
from tests.polling import somebody_waits_for_us


def test_everything_derived_can_be_made_again(palace, alice):
    for one in EVERYTHING:
        mine(palace, one)
    question = "Which wire overheated, and who bakes bread?"
    before = [
        (hit.pointer, hit.score) for hit in recall(palace, RecallRequest(question, top_k=10)).hits
    ]
    Posting.objects.all().delete()
    Passage.objects.all().delete()
    Drawer.objects.update(terms=0, preference=0)
    call_command("reindex", user=alice.username, verbosity=0)
    assert [
        (hit.pointer, hit.score) for hit in recall(palace, RecallRequest(question, top_k=10)).hits
    ] == before


def test_doing_it_twice_changes_nothing(palace, alice):
    mine(palace, EVERYTHING[0])
    call_command("reindex", user=alice.username)
    first = Posting.objects.count(), Passage.objects.count()
    call_command("reindex", user=alice.username)
    assert (Posting.objects.count(), Passage.objects.count()) == first


@pytest.mark.django_db(transaction=True)
def test_while_segments_are_merged_no_drawer_is_counted_twice(palace):
    for one in EVERYTHING:
        mine(palace, one)
    merged, rebuilding = threading.Event(), threading.Event()

    def merge():
        with transaction.atomic():
            postings.compact(palace)
            merged.set()
            rebuilding.wait(10)
            somebody_waits_for_us(1)  # Or has gone wrong.
        connection.close()

    beside = threading.Thread(target=merge)
    beside.start()
    merged.wait(10)
    rebuilding.set()
    rebuild_postings(palace)
    beside.join()
    every = Posting.objects.filter(palace=palace, term=postings.EVERY)
    posted = sorted(key for row in every for key in row.drawers)
    assert posted == sorted(Drawer.objects.values_list("pk", flat=True))

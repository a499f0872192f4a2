"""Postings kept in memory: right whatever is done to the palace, and read once."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash
from palace.mining.pipeline import mine
from palace.models import Drawer
from palace.recall.index import corpus_stats
from palace.recall.index.corpus_stats import TermKey
from palace.recall.index.index_loader import INDEX_CACHE, give_memory_back
from palace.recall.keyword import postings_of
from palace.recall.request import RecallRequest, read_request_context
from palace.storage.indexing import postings as stored
from tests.conversations import long_transcript

pytestmark = pytest.mark.usefixtures("empty_index_cache")
QUESTION = "Which wires overheated near the bread oven in Lisbon?"


def read(palace, question=QUESTION):
    """What a recall reads; it is checked against the tables."""
    context = read_request_context(palace, RecallRequest(question))
    read_again = postings_of(palace, context.readings)
    found = {term: posting for term, posting in context.postings.items() if posting is not None}
    assert found.keys() == read_again.keys()
    for term, columns in read_again.items():
        for column, expected in zip(found[term], columns, strict=True):
            assert column.tolist() == expected.tolist()
    return context


def test_what_is_known_of_a_revision_is_not_read_again(lived_in):
    first, again = read(lived_in), read(lived_in)
    assert again.corpus_stats is first.corpus_stats
    for term, posting in first.postings.items():
        assert again.postings[term] is posting


def test_every_change_is_seen_at_once(lived_in):
    read(lived_in)
    for change in (
        lambda: mine(lived_in, long_transcript(10, id="short")),
        lambda: move_to_trash(Drawer.objects.first()),
        lambda: Purge(lived_in).run(Drawer.objects.all()),
    ):
        before = read(lived_in).corpus_stats
        change()
        after = read(lived_in).corpus_stats
        assert after.revision > before.revision


def test_merging_postings_changes_nothing_that_is_read(lived_in):
    before = read(lived_in)
    stored.compact(lived_in)
    assert read(lived_in).corpus_stats == before.corpus_stats


def test_terms_asked_one_by_one_are_those_asked_together(lived_in):
    for word in QUESTION.split():
        read(lived_in, word)
    read(lived_in)


def test_more_postings_than_may_be_kept_are_read_again(lived_in, monkeypatch):
    monkeypatch.setattr(corpus_stats, "MOST_BYTES", corpus_stats.TERM_BYTES)
    read(lived_in)
    read(lived_in)
    assert not INDEX_CACHE.find(TermKey(lived_in.pk)).postings


@pytest.mark.skipif(sys.platform != "linux", reason="only there is the size known and given back")
def test_what_was_freed_is_given_back():
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("another C library")
    pieces = [bytes(2000) for _ in range(50_000)]
    ends = pieces[::500]  # Pieces that stay keep the system from taking the rest.
    full = memory_pages()
    del pieces
    assert give_memory_back()
    assert ends
    assert full - memory_pages() > 10_000


def memory_pages():
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])

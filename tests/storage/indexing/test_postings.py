from __future__ import annotations

import math
from collections import Counter

import pytest

from language.analyzer import analyze
from palace.mining.pipeline import mine
from palace.models import Drawer, Posting
from palace.recall.keyword import K1, B, by_words
from palace.storage.indexing import postings
from tests.conversations import long_transcript


def bm25(texts: dict[int, str], question: str) -> dict[int, float]:
    """By the book, over all texts."""
    terms = {key: analyze(text) for key, text in texts.items()}
    mean = sum(t.total() for t in terms.values()) / len(terms)
    scores: Counter[int] = Counter()
    for term in analyze(question):
        having = [key for key, counts in terms.items() if term in counts]
        idf = math.log(1 + (len(terms) - len(having) + 0.5) / (len(having) + 0.5))
        for key in having:
            tf = terms[key][term]
            norm = K1 * (1 - B + B * terms[key].total() / mean)
            scores[key] += idf * tf * (K1 + 1) / (tf + norm)
    return dict(scores)


def found(palace, question):
    words = by_words(palace, tuple(analyze(question)))
    return dict(zip(words.drawers.tolist(), words.scores.tolist(), strict=True))


QUESTION = "Does the wire of Derek's battery overheat when the dough rises?"


def assert_true_bm25(palace):
    texts = dict(Drawer.objects.within(palace).values_list("pk", "text"))
    assert found(palace, QUESTION) == pytest.approx(bm25(texts, QUESTION), rel=1e-4)


def test_scores_are_bm25_over_this_palace(lived_in):
    assert_true_bm25(lived_in)


def test_another_palace_changes_no_score(lived_in, bob):
    before = found(lived_in, QUESTION)
    mine(type(lived_in).objects.own(bob), long_transcript(60))
    assert found(lived_in, QUESTION) == before


def test_compaction_changes_no_score(lived_in):
    before = found(lived_in, QUESTION)
    segments = Posting.objects.filter(palace=lived_in).count()
    postings.compact(lived_in)
    assert Posting.objects.filter(palace=lived_in).count() < segments
    assert found(lived_in, QUESTION) == before
    postings.compact(lived_in)
    assert found(lived_in, QUESTION) == before


def test_compaction_keeps_segments_within_their_size(palace):
    for part in range(12):
        mine(palace, long_transcript(30, id=str(part)))
    postings.compact(palace)
    every = Posting.objects.filter(palace=palace, term=postings.EVERY)
    assert sorted(len(row.drawers) for row in every) == [40, 160, 160]
    assert_true_bm25(palace)


def test_what_is_removed_counts_no_more(lived_in):
    gone = list(Drawer.objects.within(lived_in).filter(text__contains="Derek"))
    postings.remove(lived_in, gone)
    Drawer.objects.filter(pk__in=[drawer.pk for drawer in gone]).delete()
    assert_true_bm25(lived_in)
    for row in Posting.objects.filter(palace=lived_in):
        assert not set(row.drawers) & {drawer.pk for drawer in gone}
        assert len(row.drawers) == len(row.counts) == len(row.lengths) > 0


def test_removing_from_many_segments_keeps_them_within_their_size(palace):
    for first in range(0, 1500, 300):
        keys = range(first + 1, first + 301)
        postings.append(palace, {key: Counter({"a": 1}) for key in keys})
    # Of every segment there is something that goes.
    postings.remove(palace, [Drawer(pk=key, text="") for key in range(1, 1501, 100)])
    every = Posting.objects.filter(palace=palace, term=postings.EVERY)
    sizes = sorted(len(row.drawers) for row in every)
    assert sum(sizes) == 1485
    assert sizes[-1] <= postings.SEGMENT_SIZE


def test_a_crowded_palace_says_so(palace):
    assert not postings.needs_compaction(palace)
    for number in range(postings.SMALL_SEGMENTS + 1):
        postings.append(palace, {number + 1: Counter({"a": 1})})
    assert postings.needs_compaction(palace)
    postings.compact(palace)
    assert not postings.needs_compaction(palace)


def test_what_is_appended_at_once_is_read_back_term_by_term(palace):
    terms = {key: Counter({f"only{key}": 2, "all": key}) for key in range(200, 0, -1)}
    postings.append(palace, terms)
    rows = Posting.objects.filter(palace=palace)
    everywhere = list(rows.filter(term="all").order_by("pk"))
    assert [len(row.drawers) for row in everywhere] == [postings.SEGMENT_SIZE, 40]
    assert [key for row in everywhere for key in row.drawers] == list(range(1, 201))
    assert [count for row in everywhere for count in row.counts] == list(range(1, 201))
    assert sum(row.total for row in rows.filter(term=postings.EVERY)) == sum(range(3, 203))
    alone = rows.get(term="only7")
    assert [*alone.drawers, *alone.counts, *alone.lengths, alone.total] == [7, 2, 9, 0]


def test_nothing_appended_is_nothing_written(palace):
    postings.append(palace, {})
    assert not Posting.objects.filter(palace=palace).exists()

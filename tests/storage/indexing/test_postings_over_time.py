"""Postings after any history are those of the drawers that are left: no more, no less."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase as HypothesisTestCase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from language.analyzer import analyze
from palace.models import Drawer, Palace, Posting, Room
from palace.recall.keyword import by_words
from palace.storage.indexing import postings
from palace.storage.indexing.rebuild import rebuild_postings
from palace.storage.intake import unsorted_wing
from tests.hypothesis_profiles import examples, is_thorough
from tests.storage.indexing.test_postings import bm25

WORDS = ("kayak", "oven", "harbour", "lemon", "violin", "ticket", "garden", "winter", "Tobias")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
# Mostly a message or two at a time, as people talk; now and then more than one segment holds.
batches = st.one_of(
    st.lists(texts, min_size=1, max_size=3),
    st.lists(texts, min_size=1, max_size=3).map(lambda few: few * postings.SEGMENT_SIZE),
)
picks = st.lists(st.integers(0, 10_000), min_size=1, max_size=4)


class Palaces(RuleBasedStateMachine):
    """A palace that is written to, pruned and tidied, beside a list of what it should hold."""

    @initialize()
    def begin(self):
        owner, _ = get_user_model().objects.get_or_create(username="alice")
        self.palace = Palace.objects.create(owner=owner, subject=str(timezone.now()))
        self.room = Room.objects.create(
            palace=self.palace,
            wing=unsorted_wing(self.palace),
            number=1,
            source="test",
            external_id="talk",
            title="Talk",
            started_at=BEGAN,
            ended_at=BEGAN,
        )
        self.texts: dict[int, str] = {}
        self.trashed: set[int] = set()
        self.written = 0
        # How often segments were written that need not be full, since they were last merged.
        self.small_writes = 0

    @rule(batch=batches)
    def append(self, batch):
        drawers = Drawer.objects.bulk_create(self.drawer(text) for text in batch)
        postings.append(self.palace, {d.pk: analyze(d.text) for d in drawers})
        self.texts |= {drawer.pk: drawer.text for drawer in drawers}
        self.small_writes += 1

    def drawer(self, text):
        self.written += 1
        return Drawer(
            palace=self.palace,
            room=self.room,
            number=self.written,
            source="test",
            conversation="talk",
            external_id=str(self.written),
            position=self.written,
            role="user",
            text=text,
            said_at=BEGAN,
            terms=analyze(text).total(),
            mined_at=BEGAN,
        )

    @precondition(lambda self: self.texts)
    @rule(picks=picks)
    def purge(self, picks):
        keys = self.picked(picks)
        drawers = Drawer.objects.filter(pk__in=keys)
        postings.remove(self.palace, list(drawers))
        drawers.delete()
        self.texts = {key: text for key, text in self.texts.items() if key not in keys}
        self.trashed -= keys
        self.small_writes += 1

    @precondition(lambda self: self.texts)
    @rule(picks=picks)
    def trash(self, picks):
        keys = self.picked(picks)
        Drawer.objects.filter(pk__in=keys).update(trashed_at=timezone.now())
        self.trashed |= keys

    @precondition(lambda self: self.trashed)
    @rule()
    def restore(self):
        Drawer.objects.filter(pk__in=self.trashed).update(trashed_at=None)
        self.trashed = set()

    def picked(self, picks):
        keys = sorted(self.texts)
        return {keys[pick % len(keys)] for pick in picks}

    @rule()
    def compact(self):
        postings.compact(self.palace)
        self.small_writes = 0

    @rule()
    def rebuild(self):
        rebuild_postings(self.palace)
        # It appends a batch at a time.
        self.small_writes = len(self.texts) // 128 + 1

    @invariant()
    def scores_are_bm25_of_what_is_kept(self):
        kept = {key: text for key, text in self.texts.items() if key not in self.trashed}
        for question in ("kayak lemon", "Tobias winter oven violin"):
            words = by_words(self.palace, tuple(analyze(question)))
            found = dict(zip(words.drawers.tolist(), words.scores.tolist(), strict=True))
            expected = bm25(kept, question) if kept else {}
            assert found == pytest.approx(expected, rel=1e-4)

    @invariant()
    def there_are_no_more_segments_than_must_be(self):
        full = -(-len(self.texts) // postings.SEGMENT_SIZE)
        for term in {postings.EVERY, *analyze(" ".join(WORDS))}:
            segments = list(Posting.objects.filter(palace=self.palace, term=term))
            assert len(segments) <= full + self.small_writes
            held = [key for segment in segments for key in segment.drawers.tolist()]
            assert len(held) == len(set(held))
            assert set(held) <= self.texts.keys()
            for segment in segments:
                assert 0 < segment.number <= postings.SEGMENT_SIZE
                assert len(segment.drawers) == len(segment.counts) == len(segment.lengths)


class TestPostings(HypothesisTestCase):
    def test_any_history_ends_in_the_postings_of_what_is_left(self):
        run_state_machine_as_test(
            Palaces,
            settings=settings(
                max_examples=examples(15),
                stateful_step_count=20 if is_thorough() else 10,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_many_small_appends_and_purges_neither_grow_nor_drift(palace):
    """As in years of use: a message, now and then a purge, and merging whenever it is due."""
    room = Room.objects.create(
        palace=palace,
        wing=unsorted_wing(palace),
        number=1,
        source="test",
        external_id="talk",
        title="Talk",
        started_at=BEGAN,
        ended_at=BEGAN,
    )
    for number in range(600):
        text = f"{WORDS[number % 9]} {WORDS[number % 4]} {number // 30}"
        drawer = Drawer.objects.create(
            palace=palace,
            room=room,
            number=number + 1,
            source="test",
            conversation="talk",
            external_id=str(number),
            position=number,
            role="user",
            text=text,
            said_at=BEGAN,
            terms=analyze(text).total(),
            mined_at=BEGAN,
        )
        postings.append(palace, {drawer.pk: analyze(text)})
        if number % 5 == 4:
            gone = list(Drawer.objects.within(palace).order_by("pk")[:2])
            postings.remove(palace, gone)
            Drawer.objects.filter(pk__in=[drawer.pk for drawer in gone]).delete()
        if postings.needs_compaction(palace):
            postings.compact(palace)
        every = Posting.objects.filter(palace=palace, term=postings.EVERY).count()
        assert every <= postings.SMALL_SEGMENTS + 1 + number // postings.SEGMENT_SIZE + 1
    texts = dict(Drawer.objects.within(palace).values_list("pk", "text"))
    assert len(texts) == 360
    words = by_words(palace, tuple(analyze("kayak lemon")))
    found = dict(zip(words.drawers.tolist(), words.scores.tolist(), strict=True))
    assert found == pytest.approx(bm25(texts, "kayak lemon"), rel=1e-4)
    before = sum(len(row.drawers) for row in Posting.objects.filter(palace=palace).exclude(term=""))
    assert before == sum(len(analyze(text)) for text in texts.values())

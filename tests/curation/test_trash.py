from __future__ import annotations

import threading
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from config.tasks import take_up_unfinished
from palace.curation import trash
from palace.curation.purge import Purge
from palace.curation.trash import (
    Contents,
    batch_key,
    batch_of,
    contents_of,
    drawers_in,
    moment_of,
    move_to_trash,
    restore,
)
from palace.mining.pipeline import mine, mine_room
from palace.models import Activity, Closet, Drawer, Palace, Passage, Room, Wing
from palace.recall.candidates import find_candidates
from palace.recall.index.corpus_stats import read_stats_of
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.semantic import by_meaning
from palace.storage.indexing.spaces import active_space
from palace.storage.transcript_filing import file_transcript
from tests.conversations import BATTERY, LISBON, SOURDOUGH, long_transcript
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)


@pytest.fixture
def wing(palace):
    return WingFactory(palace=palace)


@pytest.fixture
def furnished(wing):
    """Two rooms with two closets of three drawers each, and a loose drawer in each room."""
    for _ in range(2):
        room = RoomFactory(wing=wing)
        for _ in range(2):
            DrawerFactory.create_batch(3, room=room, closet=ClosetFactory(room=room))
        DrawerFactory(room=room, closet=None)
    return wing


@pytest.mark.parametrize(
    ("place", "count"), [(Wing, 14), (Room, 7), (Closet, 3), (Drawer, 1)], ids=lambda p: str(p)
)
def test_a_place_goes_as_one_batch_and_comes_back_as_one(furnished, palace, place, count):
    batch = move_to_trash(place.objects.first())
    gone = Drawer.objects.trashed()
    assert batch.drawers == gone.count() == count
    assert set(gone.values_list("trashed_at", flat=True)) == {batch.at}
    assert set(drawers_in(place.objects.first())) == set(gone)
    back = restore(palace, batch_of(palace, moment_of(batch.key)))
    assert back.drawers == count
    assert Drawer.objects.kept().count() == 14


def test_what_is_in_the_trash_already_stays_in_its_batch(furnished, palace):
    one = move_to_trash(Drawer.objects.first())
    two = move_to_trash(furnished)
    assert (one.drawers, two.drawers) == (1, 13)
    restore(palace, batch_of(palace, two.at))
    assert Drawer.objects.trashed().get().trashed_at == one.at


def test_trashing_twice_does_nothing_more(furnished):
    drawer = Drawer.objects.first()
    first, second = move_to_trash(drawer), move_to_trash(drawer)
    assert (first.drawers, second.drawers) == (1, 0)
    drawer.refresh_from_db()
    assert drawer.trashed_at == first.at
    assert Activity.objects.count() == 1


def test_restoring_twice_does_nothing_more(furnished, palace):
    batch = move_to_trash(furnished)
    assert restore(palace, batch_of(palace, batch.at)).drawers == 14
    assert restore(palace, batch_of(palace, batch.at)).drawers == 0
    assert Activity.objects.count() == 2


def test_no_two_batches_share_a_moment_though_the_clock_is_put_back(furnished):
    first, second, *_ = Drawer.objects.all()
    ahead = timezone.now() + timedelta(hours=1)
    first.trash(ahead)
    batch = move_to_trash(second)
    assert batch.at == ahead + timedelta(microseconds=1)


def test_a_batchs_key_leads_back_to_its_moment():
    now = timezone.now()
    assert moment_of(batch_key(now)) == now
    assert moment_of(10**30) is None


def test_activities_say_how_many_and_quote_nothing(furnished, palace):
    batch = move_to_trash(Room.objects.first())
    restore(palace, batch_of(palace, batch.at))
    move_to_trash(Drawer.objects.first())
    assert [activity.summary for activity in Activity.objects.all()] == [
        "Moved a drawer to the trash.",
        "Restored 7 drawers from the trash.",
        "Moved the 7 drawers of a room to the trash.",
    ]
    assert Activity.objects.last().detail == {
        "batch": batch.key,
        "drawers": 7,
        "room": str(Room.objects.first().uuid),
    }


def at_once(*works):
    errors = []

    def run(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must tell.
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.django_db(transaction=True)
def test_two_tabs_at_once_make_one_batch(furnished):
    at_once(*[lambda: move_to_trash(furnished)] * 4)
    assert Drawer.objects.values_list("trashed_at", flat=True).distinct().count() == 1
    assert Activity.objects.get().detail["drawers"] == 14


@pytest.mark.django_db(transaction=True)
def test_restoring_and_purging_at_once_loses_or_keeps_a_drawer_whole(furnished, palace):
    batch = move_to_trash(furnished)
    mine_of = batch_of(palace, batch.at)
    at_once(lambda: Purge(palace).run(mine_of), lambda: restore(palace, mine_of))
    assert Drawer.objects.count() in (0, 14)
    assert not Drawer.objects.trashed().exists()


@pytest.mark.django_db(transaction=True)
def test_trashing_while_it_is_mined(palace):
    room = file_transcript(palace, long_transcript(120)).room
    gone = Drawer.objects.filter(position__in=[3, 64, 119])

    def throw_away():
        for drawer in gone:
            move_to_trash(drawer)

    at_once(lambda: mine_room(room), throw_away)
    mine_room(room)
    assert not Drawer.objects.kept().filter(mined_at=None).exists()
    restore(palace, Drawer.objects.all())
    mine_room(room)
    assert Drawer.objects.exclude(mined_at=None).count() == 120
    assert Passage.objects.count() == 120
    assert read_stats_of(palace).number == 120


def test_what_was_trashed_unmined_is_not_mined_until_it_is_restored(palace, settings):
    settings.TAKE_UP_AFTER_S = 0
    room = file_transcript(palace, BATTERY).room
    drawer = room.drawers.get(position=0)
    move_to_trash(drawer)
    mine_room(room)
    take_up_unfinished()
    drawer.refresh_from_db()
    assert drawer.mined_at is None
    assert not Passage.objects.filter(drawer=drawer).exists()
    assert "silicon" not in set(by_term(palace))
    assert drawer.text not in recall(palace, RecallRequest(drawer.text)).context
    back = restore(palace, drawers_in(drawer))
    assert back.unmined == (room.pk,)
    mine_room(room)
    assert recall(palace, RecallRequest("silicone wire")).hits[0].drawer == drawer


def by_term(palace):
    from palace.models import Posting  # noqa: PLC0415

    return Posting.objects.filter(palace=palace).values_list("term", flat=True)


def test_a_room_all_of_whose_drawers_are_in_the_trash_is_left_unmined(palace):
    room = file_transcript(palace, BATTERY).room
    move_to_trash(room)
    assert mine_room(room).made == {}
    assert not Activity.objects.filter(kind=Activity.Kind.MEMORY_MINED).exists()


def test_importing_again_leaves_the_trash_as_it_is(palace):
    mine(palace, BATTERY)
    move_to_trash(Room.objects.get())
    mine(palace, BATTERY)
    assert Drawer.objects.trashed().count() == Drawer.objects.count() == 4


def test_recall_finds_as_if_the_trash_had_never_been_said(palace, bob):
    never = Palace.objects.own(bob)
    for one in (BATTERY, LISBON):
        mine(never, one)
    for one in (BATTERY, SOURDOUGH, LISBON):
        mine(palace, one)
    move_to_trash(Room.objects.get(palace=palace, external_id="sourdough"))
    for question in ("Which wire is too thin?", "What should we see in Lisbon on Sundays?"):
        here, there = (
            recall(palace, RecallRequest(question)),
            recall(never, RecallRequest(question)),
        )
        assert [hit.drawer.text for hit in here.hits] == [hit.drawer.text for hit in there.hits]
        assert [hit.score for hit in here.hits] == pytest.approx(
            [hit.score for hit in there.hits], abs=1e-3
        )
    found = recall(palace, RecallRequest(SOURDOUGH.turns[0].text))
    assert "sourdough" not in {hit.drawer.conversation for hit in found.hits}


def test_a_drawer_in_the_trash_is_nobodys_neighbour(palace):
    mine(palace, BATTERY)
    first, second, third, _ = Drawer.objects.order_by("position")
    move_to_trash(second)
    words = by_words(palace, ("wire",))
    assert second.pk not in words.drawers
    found = recall(palace, RecallRequest("Which wire is too thin?"))
    assert second not in [hit.drawer for hit in found.hits]
    space = active_space()
    question = read_query(palace, space, "wire", now=timezone.now(), as_of=None, by_meaning=True)
    meaning = by_meaning(palace, space, question.adapted, read_stats_of(palace))
    candidates = find_candidates(palace, question, meaning, words)
    at = np.flatnonzero(candidates.drawers == third.pk)[0]
    assert candidates.before[at] == first.pk
    at = np.flatnonzero(candidates.drawers == first.pk)[0]
    assert candidates.after[at] == third.pk


def test_much_in_the_trash_does_not_crowd_out_what_is_kept(palace):
    mine(palace, long_transcript(260))
    move_to_trash(Room.objects.get())
    mine(palace, BATTERY)
    mine(palace, long_transcript(3, id="kept"))
    hits = recall(palace, RecallRequest("What does the garden shed need?")).hits
    assert {hit.drawer.conversation for hit in hits[:3]} == {"kept"}


@pytest.mark.parametrize(("days", "left"), [(0, 30), (0.5, 30), (1.1, 29), (29.9, 1), (31, 0)])
def test_days_are_counted_until_the_purge(days, left):
    assert trash.days_left(timezone.now() - timedelta(days=days, seconds=1)) == left


def test_what_a_deletion_removes_is_counted_in_conversations_messages_and_facts(palace, furnished):
    first, second = Room.objects.order_by("pk")
    words = Drawer.objects.filter(room=first).first()
    only, shared = FactFactory(subject__palace=palace), FactFactory(subject__palace=palace)
    EvidenceFactory(fact=only, drawer=words)
    EvidenceFactory(fact=shared, drawer=words)
    EvidenceFactory(fact=shared, drawer=Drawer.objects.filter(room=second).first())
    assert contents_of(palace, drawers_in(furnished)) == Contents(2, 14, 2)
    assert contents_of(palace, drawers_in(first)) == Contents(1, 7, 1)
    # A part of a conversation is no conversation.
    assert contents_of(palace, drawers_in(words)) == Contents(0, 1, 1)
    move_to_trash(words)
    assert contents_of(palace, drawers_in(first)) == Contents(1, 6, 0)

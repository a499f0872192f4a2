"""The engine: whatever becomes of a transaction, a statement reaches what is open, and no more."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from config.middleware import without_row_access
from isolation import row_access
from palace.models import Closet, Palace, Wing, open_palace
from tests.config.test_pool import pooled  # noqa: F401
from tests.factories import WingFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def bobs(bob):
    return Palace.objects.own(bob)


def session(wrapper=connection):
    """What the server itself says."""
    with row_access.unchanged(), wrapper.cursor() as cursor:
        cursor.execute("SELECT current_user::text, current_setting('loci.palace', true)")
        return cursor.fetchone()


def lock_timeout(wrapper=connection):
    with wrapper.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return cursor.fetchone()[0]


def visible():
    return list(Palace.objects.order_by("pk"))


def test_it_is_the_block_that_counts(palace, bobs):
    with open_palace(palace):
        assert visible() == [palace]
        with open_palace(bobs):
            assert visible() == [bobs]
        assert visible() == [palace]
    assert visible() == [palace, bobs]


def test_after_a_savepoint_was_rolled_back_it_is_set_again(palace, bobs):
    """The server goes back to what was set before; so must what is known of it."""
    with open_palace(palace):
        assert visible() == [palace]
        with transaction.atomic(), open_palace(bobs):
            assert visible() == [bobs]
            transaction.set_rollback(True)
        assert visible() == [palace]
        with open_palace(bobs):
            assert visible() == [bobs]


def test_a_wait_for_a_lock_is_limited_in_its_block_alone(palace):
    with row_access.lock_wait(0.02):
        assert lock_timeout() == "20ms"
        with transaction.atomic(), row_access.lock_wait(30):
            assert lock_timeout() == "30s"
            transaction.set_rollback(True)
        assert lock_timeout() == "20ms"
        with open_palace(palace), row_access.lock_wait(None):
            assert lock_timeout() == "0"
            assert visible() == [palace]
    assert lock_timeout() == "0"


def test_a_statement_that_failed_within_a_block_leaves_a_way_out(palace, bobs):
    """The savepoint is rolled back after the block has ended: then nothing may be set before."""
    wing = WingFactory(palace=palace)
    with pytest.raises(IntegrityError), transaction.atomic(), open_palace(palace):
        WingFactory(palace=palace, number=wing.number)
    assert visible() == [palace, bobs]


def test_a_cursor_that_was_opened_before_reaches_what_is_open_when_it_is_used(palace, bobs):
    with connection.cursor() as cursor, open_palace(bobs):
        cursor.execute("SELECT id FROM palace_palace")
        assert cursor.fetchall() == [(bobs.pk,)]


def test_rows_fetched_piece_by_piece_are_those_within_reach(palace, bobs):
    WingFactory(palace=palace)
    with open_palace(bobs):
        assert list(Wing.objects.iterator()) == []


def test_another_thread_begins_with_nothing(palace):
    seen = []
    before = row_access.current()
    row_access.deny_all_by_default()
    try:
        with open_palace(palace):
            thread = threading.Thread(target=lambda: seen.append(row_access.current()))
            thread.start()
            thread.join()
    finally:
        row_access.allow_all_by_default()
    assert seen == [row_access.NO_ACCESS]
    assert before != row_access.NO_ACCESS


@pytest.mark.django_db(transaction=True)
def test_a_thread_finds_and_writes_nothing_until_it_opens_something(palace):
    def look():
        try:
            seen.append((Palace.objects.count(), Wing.objects.count()))
            with pytest.raises(ProgrammingError, match="row-level security"):
                WingFactory(palace=palace)
            with open_palace(palace):
                seen.append((Palace.objects.count(), Wing.objects.count()))
        finally:
            connection.close()

    WingFactory(palace=palace)
    seen = []
    row_access.deny_all_by_default()
    try:
        with open_palace(palace), ThreadPoolExecutor(1) as threads:
            threads.submit(look).result()
            # What one piece of work has opened, the next one in the same thread has not.
            threads.submit(look).result()
    finally:
        row_access.allow_all_by_default()
    assert seen == [(0, 0), (1, 1)] * 2


def test_a_request_begins_with_nothing_in_whatever_context_it_runs(palace):
    seen = []

    async def application(*arguments):
        seen.append((arguments, row_access.current()))

    with open_palace(palace):
        asyncio.run(without_row_access(application)("scope", "receive", "send"))
    assert seen == [(("scope", "receive", "send"), row_access.NO_ACCESS)]


def test_only_a_change_is_a_round_trip(palace):
    with open_palace(palace):
        visible()
        before = connection.connection._loci_access
        visible()
        assert connection.connection._loci_access is before


def test_a_shared_connection_is_handed_on_with_nothing_open(pooled, palace, bobs):  # noqa: F811
    first = pooled()
    with open_palace(palace), row_access.lock_wait(5):
        assert lock_timeout(first) == "5s"
        pid = first.connection.info.backend_pid
        assert session(first) == ("loci_palace", str(palace.pk))
    first.close()
    others = [pooled(), pooled()]
    with row_access.deny_all():
        for wrapper in others:
            with wrapper.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM palace_palace")
                assert cursor.fetchone() == (0,)
    [again] = [each for each in others if each.connection.info.backend_pid == pid]
    assert session(again) == ("loci_person", "")
    assert lock_timeout(again) == "0"


def test_pieces_are_made_within_reach_and_their_reader_is_not(palace, bobs):
    def names():
        for _ in range(2):
            yield [each.pk for each in visible()]

    with row_access.deny_all():
        pieces = row_access.iterate_with(
            names(), row_access.Access(row_access.PALACE, bobs.pk, bobs.owner_id)
        )
        assert next(pieces) == [bobs.pk]
        assert visible() == []
        assert list(pieces) == [[bobs.pk]]


def closet_of_no_room(palace):
    """What the database refuses only when it is committed."""
    with transaction.atomic():
        Closet.objects.create(palace=palace, room_id=0, slug="a", title="A")


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_fails_is_forgotten(palace, bobs):
    with open_palace(palace):
        with pytest.raises(IntegrityError):
            closet_of_no_room(palace)
        assert visible() == [palace]
        assert session() == ("loci_palace", str(palace.pk))

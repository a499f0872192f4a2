"""The record of a recall: how the question was read, what was cut, and why."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from isolation.raw_sql import fetch_rows
from palace.mining.pipeline import mine
from palace.models import Drawer, HitsField, Palace, RecollectionTrace, Room
from palace.models.packed import pack_table, unpack_table
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.trace import KNOWN, MAX_EXCLUDED, MAX_REJECTED, NO_ROOM, RANKED_LOWER, TOO_FAR
from tests.conversations import EVERYTHING, long_transcript, transcript
from tests.furnished_palaces import furnish_with
from tests.polling import somebody_waits_for_us

NOW = datetime(2025, 3, 12, 10, tzinfo=UTC)


@pytest.fixture
def lived_in(palace):
    return furnish_with(palace, *EVERYTHING)


def trace_of(found):
    return RecollectionTrace.objects.get(uuid=found.uuid)


def test_how_the_question_was_read_is_kept(lived_in):
    question = 'Last week, did Derek say "silicone wire" or did I? List all the wires.'
    read = trace_of(recall(lived_in, RecallRequest(question, now=NOW))).reading
    assert {"silicon", "wire", "derek"} <= set(read["terms"])
    assert read["names"] == ["Derek"]
    assert read["quoted"] == ["silicone wire"]
    assert {"user", "survey"} <= set(read["asks"])
    assert read["by_meaning"] is True
    (period,) = read["periods"]
    assert period["text"].lower() == "last week"
    assert datetime.fromisoformat(period["start"]) == datetime(2025, 3, 3, tzinfo=UTC)
    assert datetime.fromisoformat(period["end"]) == datetime(2025, 3, 10, tzinfo=UTC)


def test_what_the_question_says_nothing_of_is_left_out(lived_in):
    read = trace_of(recall(lived_in, RecallRequest("wires", recipe="keyword"))).reading
    assert read == {"terms": ["wire"]}


def test_what_did_not_fit_the_budget_is_recorded_hit_by_hit(lived_in):
    question = "Which wire is too thin for the battery?"
    whole = recall(lived_in, RecallRequest(question, top_k=4))
    found = recall(
        lived_in, RecallRequest(question, top_k=4, budget_tokens=whole.context_tokens - 10)
    )
    hits = trace_of(found).hits
    held = [str(hit.pointer) in found.context for hit in found.hits]
    assert {True, False} == set(held)
    assert [hit.get("cut") for hit in hits] == [None if each else NO_ROOM for each in held]


def test_a_drawer_that_was_shortened_for_want_of_room_says_so(palace):
    sentences = [f"On day {n} the brass telescope showed a comet of its own." for n in range(90)]
    mine(palace, transcript(" ".join(sentences), "Lovely.", id="comet"))
    found = recall(palace, RecallRequest("What did the brass telescope show?", budget_tokens=400))
    assert "[…]" in found.context
    (shortened,) = (hit for hit in trace_of(found).hits if hit.get("shortened"))
    assert shortened["drawer"] == str(Drawer.objects.get(conversation="comet", position=0).uuid)


def test_every_candidate_is_counted_once(lived_in):
    known = Drawer.objects.get(text__startswith="I tried a 12-AWG")
    found = recall(
        lived_in, RecallRequest("Which wire overheated?", top_k=2, exclude_ids=[known.pk])
    )
    trace = trace_of(found)
    cut = trace.figures["cut"]
    assert cut[KNOWN] == 1
    assert trace.figures["looked_at"] == len(trace.hits) + sum(cut.values())
    assert Counter(each["cut"] for each in trace.cut()) == cut
    assert trace.figures["given"] == len(trace.hits)


def test_places_go_on_from_the_hits(lived_in):
    trace = trace_of(recall(lived_in, RecallRequest("Which wire overheated?", top_k=2)))
    lower = [each for each in trace.cut() if each["cut"] == RANKED_LOWER]
    assert [each["place"] for each in lower] == list(range(3, 3 + len(lower)))
    assert all("place" not in each for each in trace.cut() if each["cut"] == TOO_FAR)


def test_shares_add_up_to_the_score_of_hits_and_of_those_that_were_cut(lived_in):
    trace = trace_of(
        recall(lived_in, RecallRequest("Did Derek say in March which wire to use?", top_k=2))
    )
    for each in (*trace.hits, *trace.cut()):
        assert sum(each["signals"].values()) == pytest.approx(each["score"], abs=0.001)


def test_hits_have_their_shares_however_they_are_stored(lived_in):
    trace = trace_of(recall(lived_in, RecallRequest("Which wire to use?", top_k=2)))
    rows = RecollectionTrace.objects.filter(pk=trace.pk)
    shares = [{"meaning": 0.5, "words": 0.25}, {"meaning": 0.125, "words": 1.0}]
    unlike = [{"meaning": 0.5}, {"words": 0.25}]
    places = [{"pointer": "one"}, {"pointer": "two"}]
    older = [{**place, "signals": own} for place, own in zip(places, shares, strict=True)]
    assert HitsField.packed(places, shares) != older
    for stored, own in [
        (older, shares),
        (HitsField.packed(places, shares), shares),
        (HitsField.packed(places, unlike), unlike),
    ]:
        rows.update(hits=stored)
        assert [each["signals"] for each in rows.get().hits] == own
        assert [each["pointer"] for each in rows.get().hits] == ["one", "two"]
    rows.update(hits=HitsField.packed([], []))
    assert rows.get().hits == []


def test_candidates_of_older_traces_are_read_too(lived_in):
    question = RecallRequest("Which wire overheated?", top_k=2)
    cut = trace_of(recall(lived_in, question)).cut()
    assert {"place" in each for each in cut} == {True, False}
    rows = [[one["drawer"], one["score"], one["cut"], one.get("place")] for one in cut]
    shares = [list(one["signals"].values()) for one in cut]
    oldest = {"rows": [[*row, *own] for row, own in zip(rows, shares, strict=True)]}
    for stored in oldest, {"rows": rows, "shares": pack_table(np.array(shares))}:
        candidates = {"signals": list(cut[0]["signals"]), **stored}
        assert RecollectionTrace(candidates=candidates).cut() == cut


def test_what_was_held_back_is_on_record_among_many_that_ranked_lower(palace):
    mine(palace, long_transcript(120))
    held_back = list(Drawer.objects.order_by("pk").values_list("pk", flat=True)[:60])
    question = "Did the bicycle chain, the rehearsal, the receipt or the board come up?"
    trace = trace_of(recall(palace, RecallRequest(question, top_k=1, exclude_ids=held_back)))
    kept = Counter(each["cut"] for each in trace.cut())
    assert trace.figures["cut"][KNOWN] > kept[KNOWN] == MAX_EXCLUDED
    assert sum(kept.values()) <= MAX_REJECTED


def test_a_recall_that_is_only_tried_leaves_no_trace(lived_in):
    kept = recall(lived_in, RecallRequest("Which wire overheated?"))
    tried = recall(lived_in, RecallRequest("Which wire overheated?", store_trace=False))
    assert [hit.drawer for hit in tried.hits] == [hit.drawer for hit in kept.hits]
    assert list(RecollectionTrace.objects.values_list("uuid", flat=True)) == [kept.uuid]


def test_rooms_of_the_hits_are_recalled_once_a_day(lived_in):
    recall(lived_in, RecallRequest("Which wire overheated?", store_trace=False))
    assert not Room.objects.exclude(recalled_at=None).exists()
    found = recall(lived_in, RecallRequest("Which wire overheated?", top_k=1))
    [room] = Room.objects.exclude(recalled_at=None)
    assert room == found.hits[0].drawer.room
    recall(lived_in, RecallRequest("Which wire overheated?", top_k=1))
    first = room.recalled_at
    room.refresh_from_db()
    assert room.recalled_at == first
    Room.objects.update(recalled_at=first - timedelta(days=2))
    recall(lived_in, RecallRequest("Which wire overheated?", top_k=1))
    room.refresh_from_db()
    assert room.recalled_at > first
    assert Room.objects.filter(recalled_at__lt=first).count() == Room.objects.count() - 1


@pytest.mark.django_db(transaction=True)
def test_a_recall_waits_for_no_room_that_another_transaction_changes(lived_in):
    question = RecallRequest("Which wire overheated?", top_k=1)

    def beside():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '5s'")
        try:
            return recall(lived_in, question)
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        Room.objects.update(title="Being changed")
        found = other.submit(beside).result()
    assert trace_of(found).hits
    assert not Room.objects.exclude(recalled_at=None).exists()
    recall(lived_in, question)
    assert Room.objects.exclude(recalled_at=None).get() == found.hits[0].drawer.room


@pytest.mark.django_db(transaction=True)
def test_a_recall_leaves_the_rooms_of_a_palace_that_is_being_deleted(lived_in):
    """Else each would wait for the other."""

    def beside():
        try:
            return recall(lived_in, RecallRequest("Which wire overheated?"))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic():
        Palace.objects.select_for_update().get(pk=lived_in.pk)
        found = other.submit(beside)
        assert somebody_waits_for_us()
        assert list(Room.objects.select_for_update(nowait=True))
        lived_in.delete()
    with pytest.raises(Palace.DoesNotExist):
        found.result()


def records_without_waiting():
    [(number,)] = fetch_rows(
        "SELECT coalesce(sum(generic_plans), 0)::bigint FROM pg_prepared_statements"
        " WHERE strpos(statement, 'INSERT INTO palace_recollectiontrace') > 0"
        " AND strpos(statement, 'set_config(''synchronous_commit'', ''off'', true)') > 0",
        [],
    )
    return number


@pytest.mark.django_db(transaction=True)
def test_the_record_does_not_keep_the_recall_waiting_nor_others_from_the_disk(lived_in):
    request = RecallRequest("Which wire overheated?")
    for _ in range(4):  # From then on the connection has all statements prepared.
        recall(lived_in, request)
    before = records_without_waiting()
    with CaptureQueriesContext(connection) as queries:
        recall(lived_in, request)
    assert records_without_waiting() == before + 1
    # By itself it is a transaction, and ends with it: nothing else is begun that would wait.
    assert not {"BEGIN", "COMMIT"} & {query["sql"] for query in queries}
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


@pytest.mark.django_db
def test_a_callers_own_transaction_still_waits_for_the_disk(lived_in):
    found = recall(lived_in, RecallRequest("Which wire overheated?"))
    assert trace_of(found).hits
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


@pytest.mark.parametrize("rows", [0, 1, 10, 200])
def test_a_table_is_read_as_it_was_packed_to_four_decimals(rows):
    numbers = np.random.default_rng(rows).normal(scale=9, size=(rows, 12))
    assert unpack_table(pack_table(numbers), rows) == np.round(numbers, 4).tolist()

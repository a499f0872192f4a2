from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from language.storable import EMPTY, UNSTORABLE, is_storable
from language.transcripts import ROLES, Transcript, Turn
from palace.models import Drawer, Room, Wing
from palace.storage.transcript_filing import DIFFERS, REPEATED, file_transcript, file_transcripts
from tests.conversations import BATTERY, START, long_transcript, transcript
from tests.hypothesis_profiles import examples

ODD_TEXTS = [
    "\n\n  leading and trailing blanks \t\n",
    "carriage\r\nreturns\rand\ttabs",
    "emoji 👩‍👩‍👧 and a zero\u200bwidth, right-to-left \u202eabc, e\u0301 decomposed",
    "<b>&amp; not HTML</b> 'quotes' \\n %s {braces}",
    "x" * 100_000,
    "I wrote about <memory_context> myself.",
]
ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
ZONES = st.just(UTC) | st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
TURNS = st.builds(
    Turn,
    external_id=st.sampled_from(("1", "2", "3")) | ANY_TEXT,
    role=st.sampled_from(ROLES),
    text=ANY_TEXT,
    said_at=st.datetimes(timezones=ZONES),
    speaker=ANY_TEXT,
)
TRANSCRIPTS = st.builds(
    Transcript,
    source=st.just("plain"),
    external_id=ANY_TEXT,
    title=ANY_TEXT,
    turns=st.lists(TURNS, max_size=6).map(tuple),
    agent=ANY_TEXT,
)


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(transcript=TRANSCRIPTS)
def test_every_message_is_kept_once_or_counted(palace, transcript):
    with transaction.atomic():
        filed = file_transcript(palace, transcript)
        kept = list(Drawer.objects.within(palace).order_by("position"))
        said = [turn.text for turn in transcript.turns if turn.text.strip()]
        assert filed.stored == len(kept)
        assert filed.stored + sum(filed.skipped.values()) == len(transcript.turns)
        remaining = iter(said)
        assert all(drawer.text in remaining for drawer in kept), "In the order they were said."
        assert all(is_storable(drawer.text) for drawer in kept)

        again = file_transcript(palace, transcript)
        assert again.stored == 0
        assert Drawer.objects.within(palace).count() == len(kept)
        transaction.set_rollback(True)


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_a_message_is_kept_to_the_byte(palace, text):
    file_transcript(palace, transcript(text))
    assert Drawer.objects.get().text.encode() == text.encode()


def test_an_empty_conversation_makes_nothing(palace):
    filed = file_transcript(palace, transcript())
    assert filed.room is None
    assert not Room.objects.exists()
    assert not Wing.objects.exists()


def test_a_conversation_of_blank_messages_makes_nothing_and_says_why(palace):
    filed = file_transcript(palace, transcript("", " \n"))
    assert filed.room is None
    assert filed.skipped == {EMPTY: 2}
    assert not Room.objects.exists()


def test_filing_twice_adds_nothing(palace):
    first = file_transcript(palace, BATTERY)
    second = file_transcript(palace, BATTERY)
    assert (first.stored, first.present) == (4, 0)
    assert (second.stored, second.present) == (0, 4)
    assert Drawer.objects.count() == 4
    assert Room.objects.count() == 1


def test_more_of_a_conversation_continues_its_room(palace):
    file_transcript(palace, dataclasses.replace(BATTERY, turns=BATTERY.turns[:2]))
    filed = file_transcript(palace, BATTERY)
    assert (filed.stored, filed.present) == (2, 2)
    drawers = Drawer.objects.order_by("position")
    assert [d.text for d in drawers] == [turn.text for turn in BATTERY.turns]
    assert [d.number for d in drawers] == [1, 2, 3, 4]


def test_new_turns_alone_come_after_those_already_here(palace):
    file_transcript(palace, dataclasses.replace(BATTERY, turns=BATTERY.turns[:2]))
    file_transcript(palace, dataclasses.replace(BATTERY, turns=BATTERY.turns[2:]))
    drawers = Drawer.objects.order_by("position")
    assert [d.text for d in drawers] == [turn.text for turn in BATTERY.turns]


def test_a_changed_message_is_reported_and_the_first_one_kept(palace):
    file_transcript(palace, transcript("The first words."))
    filed = file_transcript(palace, transcript("Other words."))
    assert filed.skipped == {DIFFERS: 1}
    assert Drawer.objects.get().text == "The first words."


def test_what_postgres_cannot_hold_is_skipped_with_its_reason(palace):
    filed = file_transcript(palace, transcript("a\0b", "lone \ud800 surrogate", "fine"))
    assert filed.skipped == {UNSTORABLE: 2}
    assert Drawer.objects.get().text == "fine"


def test_an_id_that_comes_twice_is_filed_once(palace):
    [turn, *_] = BATTERY.turns
    doubled = dataclasses.replace(BATTERY, turns=(turn, turn))
    filed = file_transcript(palace, doubled)
    assert (filed.stored, filed.skipped) == (1, {REPEATED: 1})


def test_overlong_names_and_ids_are_shortened_without_running_together(palace):
    for last in "ab":
        turn = dataclasses.replace(
            BATTERY.turns[0], external_id="m" * 300 + last, speaker="s" * 300
        )
        conversation = "c" * 300
        file_transcript(palace, Transcript("plain", conversation, "t" * 300 + "\0", (turn,)))
    assert Drawer.objects.count() == 2
    assert Room.objects.count() == 1


def test_the_same_conversation_id_from_another_source_is_another_room(palace):
    file_transcript(palace, transcript("Here.", source="plain"))
    file_transcript(palace, transcript("There.", source="claude"))
    assert Room.objects.count() == 2


def test_a_room_spans_its_messages(palace):
    filed = file_transcript(palace, BATTERY)
    assert filed.room.started_at == START
    assert filed.room.ended_at == BATTERY.turns[-1].said_at


@pytest.mark.parametrize(
    "seen",
    [
        [(0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7)],  # Each time only the last few messages.
        [(0, 1, 4, 5), (0, 1, 2, 3, 4, 5, 6, 7)],  # A gap that is filled later.
        [(4, 5), (2, 3, 4), (0, 1, 2), (5, 6, 7)],  # Backwards, a page at a time.
        [(0, 2, 4, 6), (1, 2), (3, 4), (5, 6), (6, 7)],
    ],
)
def test_the_order_is_the_conversations_however_its_parts_arrive(palace, seen):
    whole = long_transcript(8)
    for places in seen:
        part = tuple(whole.turns[place] for place in places)
        file_transcript(palace, dataclasses.replace(whole, turns=part))
    drawers = list(Drawer.objects.in_order())
    assert [drawer.text for drawer in drawers] == [turn.text for turn in whole.turns]
    assert len({drawer.position for drawer in drawers}) == 8


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_the_ends_of_the_calendar_can_be_read_back(palace, moment):
    [turn, *_] = BATTERY.turns
    odd = dataclasses.replace(BATTERY, turns=(dataclasses.replace(turn, said_at=moment),))
    file_transcript(palace, odd)
    assert Drawer.objects.get().said_at.year == moment.year


def test_many_conversations_are_filed_as_if_one_by_one(palace, bob):
    others = type(palace).objects.own(bob)
    more = dataclasses.replace(BATTERY.turns[-1], external_id="more", text="And on.")
    grown = dataclasses.replace(BATTERY, turns=(*BATTERY.turns, more))
    turns_kept = [
        dataclasses.replace(BATTERY, turns=BATTERY.turns[:2]),
        transcript(),
        transcript("Elsewhere.", id="other"),
        BATTERY,
        grown,
        dataclasses.replace(BATTERY, source="claude"),
    ]
    together = file_transcripts(palace, turns_kept)
    alone = [file_transcript(others, one) for one in turns_kept]
    assert [(f.stored, f.present, f.skipped) for f in together] == [
        (f.stored, f.present, f.skipped) for f in alone
    ]
    assert [f.room and f.room.number for f in together] == [f.room and f.room.number for f in alone]
    assert stored(palace) == stored(others)


def stored(palace):
    drawers = Drawer.objects.within(palace).order_by("room__number", "number")
    return list(
        drawers.values_list("room__number", "number", "position", "external_id", "text", "said_at")
    )


def test_many_conversations_at_once_cost_no_more_queries_than_one(palace):
    def queries(first, last):
        some = [transcript("One.", "Two.", id=str(number)) for number in range(first, last)]
        with CaptureQueriesContext(connection) as captured:
            file_transcripts(palace, some)
        return len(captured)

    queries(0, 1)  # Makes the unsorted wing.
    assert queries(1, 2) == queries(2, 40)
    assert Room.objects.filter(palace=palace).count() == 40

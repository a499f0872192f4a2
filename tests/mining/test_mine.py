from __future__ import annotations

import dataclasses
import threading

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from palace.knowledge.facts import learn_room
from palace.mining.pipeline import mine, mine_many, mine_room, mine_rooms
from palace.models import (
    Activity,
    Closet,
    Drawer,
    Entity,
    Mention,
    Passage,
    Posting,
    Room,
    Wing,
)
from palace.storage.indexing import postings
from palace.storage.indexing.passages import split_text
from palace.storage.transcript_filing import file_transcript
from tests.conversations import BATTERY, EVERYTHING, long_transcript, transcript


def picture(palace):
    """Everything a palace says, without the keys and times of its rows."""
    drawers = (
        Drawer.objects.within(palace).with_place().order_by("source", "conversation", "position")
    )
    every = Posting.objects.filter(palace=palace, term=postings.EVERY)
    return {
        "drawers": [
            (
                d.text,
                str(d.pointer),
                d.room.wing.name,
                d.room.title,
                d.closet.title,
                d.tags,
                d.terms,
            )
            for d in drawers
        ],
        "passages": [
            (p.drawer.text, p.ordinal, p.start, p.end, list(p.embedding))
            for p in Passage.objects.filter(palace=palace)
            .select_related("drawer")
            .order_by("drawer__conversation", "drawer__position", "ordinal")
        ],
        "entities": sorted(Entity.objects.filter(palace=palace).values_list("kind", "slug")),
        "mentions": sorted(
            Mention.objects.filter(palace=palace).values_list(
                "drawer__text", "entity__slug", "start", "end"
            )
        ),
        "in postings": sorted(key for posting in every for key in posting.drawers)
        == sorted(drawer.pk for drawer in drawers),
        "wings": list(Wing.objects.within(palace).values_list("number", "name")),
        "closets": sorted(Closet.objects.within(palace).values_list("room__title", "slug")),
    }


def test_every_message_lands_in_one_drawer_with_its_place(palace):
    for one in EVERYTHING:
        mine(palace, one)
    drawers = Drawer.objects.within(palace).with_place()
    assert sorted(d.text for d in drawers) == sorted(
        t.text for one in EVERYTHING for t in one.turns
    )
    for drawer in drawers:
        assert drawer.mined_at is not None
        assert drawer.closet.room_id == drawer.room_id
        assert drawer.room.wing.number != Wing.UNSORTED
        assert drawer.passages.exclude(embedding=None).count() == len(split_text(drawer.text, 900))


def test_mentions_are_exactly_the_words_in_the_drawer(palace):
    for one in EVERYTHING:
        mine(palace, one)
    mentions = Mention.objects.filter(palace=palace).select_related("drawer", "entity")
    assert {m.entity.name for m in mentions} >= {"Derek", "Lisbon"}
    for mention in mentions:
        named = mention.drawer.text[mention.start : mention.end]
        assert named.casefold() in {
            name.casefold() for name in (mention.entity.name, *mention.entity.aliases)
        }


def test_an_activity_says_what_landed(palace):
    mine(palace, BATTERY)
    activity = Activity.objects.get(palace=palace)
    assert activity.kind == Activity.Kind.MEMORY_MINED
    assert activity.summary.startswith("Remembered 4 messages of")
    assert activity.detail["made"]["drawers"] == 4


def test_an_empty_conversation_makes_nothing(palace):
    mine(palace, transcript())
    assert not Activity.objects.exists()
    assert not Room.objects.exists()


def test_mining_twice_leaves_the_same_palace(palace):
    for one in EVERYTHING:
        mine(palace, one)
    before = picture(palace)
    for one in EVERYTHING:
        mine(palace, one)
    assert picture(palace) == before
    assert Activity.objects.count() == len(EVERYTHING)


def test_another_palace_gets_the_same_of_its_own(palace, bob):
    others = type(palace).objects.own(bob)
    mine(palace, BATTERY)
    mine(others, BATTERY)
    assert picture(palace) == picture(others)
    assert Drawer.objects.within(palace).count() == 4


@pytest.mark.django_db(transaction=True)
def test_mining_at_once_in_many_places_leaves_the_same_palace(palace, bob):
    alone = type(palace).objects.own(bob)
    talk = long_transcript(70)
    mine(alone, talk)

    def work():
        try:
            mine(palace, talk)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must tell.
            errors.append(error)
        finally:
            connection.close()

    errors = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    mine_room(Room.objects.get(palace=palace))  # The one turned away may have been the last.
    assert picture(palace) == picture(alone)


def test_a_conversation_that_grows_is_mined_as_it_grows(palace):
    for length in range(1, len(BATTERY.turns) + 1):
        mine(palace, dataclasses.replace(BATTERY, turns=BATTERY.turns[:length]))
    assert Drawer.objects.within(palace).count() == 4
    assert not Drawer.objects.unmined().exists()
    assert Room.objects.get().drawers.count() == 4


def test_what_was_filed_and_not_mined_is_mined_by_the_next_run(palace):
    room = file_transcript(palace, BATTERY).room
    assert room.wing.number == Wing.UNSORTED
    mine_room(room)
    assert Room.objects.get().wing.number == 1
    assert not Drawer.objects.unmined().exists()


def test_a_long_conversation_is_read_in_windows(palace):
    filed, mined = mine(palace, long_transcript(120))
    assert (filed.stored, mined.made["drawers"]) == (120, 120)
    assert Closet.objects.filter(palace=palace).count() > 1
    assert Drawer.objects.within(palace).filter(closet=None).count() == 0


def test_a_run_that_broke_has_reported_what_it_landed(palace):
    room = file_transcript(palace, long_transcript(120)).room
    last = Drawer.objects.order_by("position").last()
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.drawer_id = {last.pk} THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON palace_passage
            FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
    with pytest.raises(DatabaseError, match="refused"):
        mine_room(room)
    assert Drawer.objects.unmined().count() == 60
    assert [a.detail["made"]["drawers"] for a in Activity.objects.all()] == [60]
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER refuse ON palace_passage")
    mine_room(room)
    assert [a.detail["made"]["drawers"] for a in Activity.objects.all()] == [60, 60]


def test_many_conversations_land_as_if_one_by_one(palace, bob):
    others = type(palace).objects.own(bob)
    talk = [*EVERYTHING, long_transcript(70), transcript("Derek called.", "When?", id="derek")]
    assert mine_many(palace, talk) == sum(len(one.turns) for one in talk)
    for room in Room.objects.within(palace).order_by("pk"):
        learn_room(room)  # Of many its facts are read later.
    for one in talk:
        mine(others, one)
    assert picture(palace) == picture(others)
    assert sorted(a.summary for a in Activity.objects.filter(palace=palace)) == sorted(
        a.summary for a in Activity.objects.filter(palace=others)
    )


def test_many_rooms_cost_hardly_more_queries_than_one(palace):
    def queries(first, last):
        texts = [f"The kettle of flat {n} boils over in the morning." for n in range(100)]
        rooms = [
            file_transcript(palace, transcript(*texts[n : n + 2], id=str(n))).room
            for n in range(first, last)
        ]
        with CaptureQueriesContext(connection) as captured:
            mine_rooms(rooms)
        return len(captured)

    queries(0, 3)  # Their wing is made once.
    assert queries(4, 42) < 2 * queries(3, 4)
    assert not Drawer.objects.unmined().exists()


def test_a_long_conversation_is_called_by_what_most_of_its_windows_are_about(palace):
    begin = ("Which chores come first in a week with three dates in it?", "Those with a date.") * 5
    hives = (
        "Do I feed sugar syrup to a bee hive that weighs little?",
        "Two parts of sugar to one of water.",
        "Wasps rob one of the bee hives while I feed it.",
        "Make its entrance smaller.",
    ) * 12
    mine(palace, transcript(*begin, *hives, id="bees"))
    assert "hive" in Room.objects.within(palace).get().title.lower()

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from language.analyzer import analyze
from llm.embedding import cache
from llm.embedding import embed as embed_texts
from llm.models import CachedEmbedding
from palace.curation.purge import BATCH, Purge, purge_expired, purge_trash
from palace.curation.trash import KEPT_DAYS, drawers_in, move_to_trash, restore
from palace.mining.pipeline import mine
from palace.models import (
    Activity,
    Closet,
    Drawer,
    Entity,
    Mention,
    Palace,
    Passage,
    Posting,
    RecollectionTrace,
    Room,
    Wing,
)
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import active_space, model_of
from palace.storage.transcript_filing import UNTITLED, file_transcript
from tests.conversations import (
    BATTERY,
    EVERYTHING,
    LISBON,
    SOURDOUGH,
    START,
    long_transcript,
    transcript,
)
from tests.curation.conftest import purge
from tests.factories import DrawerFactory, RoomFactory, WingFactory
from tests.mining.test_mine import picture
from tests.storage.indexing.test_postings import assert_true_bm25


def words_in_the_database():
    """Everything that is written in any table, as one text in lower case."""
    rows = []
    for model in apps.get_models():
        with connection.cursor() as cursor:
            table = model._meta.db_table
            cursor.execute(f'SELECT row_to_json(t) FROM "{table}" t')  # noqa: S608
            rows += [json.dumps(row, ensure_ascii=False) for (row,) in cursor.fetchall()]
    return "\n".join(rows).lower()


def test_no_table_holds_a_word_of_a_purged_conversation(lived_in):
    recall(lived_in, RecallRequest("Why do the loaves come out flat?", top_k=12))
    recall(lived_in, RecallRequest(SOURDOUGH.turns[0].text, top_k=12))
    for word in ("sourdough", "vinegar", "walnut", "loaves"):
        assert word in words_in_the_database()
    assert purge(lived_in, conversation="sourdough") == 4
    # The first of the two questions was asked by the person, and is no drawer's text.
    asked = RecollectionTrace.objects.filter(query__startswith="Why do the loaves")
    asked.update(query="?", reading={})
    left = words_in_the_database()
    for word in ("sourdough", "vinegar", "walnut", "loaves", "starter", "bake"):
        assert word not in left


def test_no_table_holds_a_word_of_one_purged_message(palace):
    mine(
        palace,
        transcript(
            "The code of the safe is Xylophone-4711, and nobody else may know it.",
            "Understood. I will keep that to myself and never say it aloud.",
            "Thank you. Now let us talk about the garden and its apple trees.",
            "Apple trees are best pruned in late winter, before the buds open.",
            id="secret",
            title="Xylophone safe",
        ),
    )
    recall(palace, RecallRequest("What is the code of the safe?"))
    assert "xylophone" in words_in_the_database()
    assert purge(palace, text__contains="Xylophone") == 1
    left = words_in_the_database()
    assert "xylophone" not in left
    assert Room.objects.get().title == UNTITLED
    assert "apple" in left


def test_a_title_keeps_the_words_that_others_say(lived_in):
    room = Room.objects.get(external_id="battery")
    mined = Activity.objects.get(detail__room=str(room.uuid))
    assert room.title == "Battery wiring"
    assert "Remembered 4 messages of “Battery wiring”" in mined.summary
    purge(lived_in, text=BATTERY.turns[1].text)
    room.refresh_from_db()
    assert room.title == "Battery wiring"
    purge(lived_in, text=BATTERY.turns[0].text)  # The others speak of no battery.
    room.refresh_from_db()
    mined.refresh_from_db()
    assert room.title == UNTITLED
    assert "Remembered 4 messages of “Untitled conversation”" in mined.summary


@pytest.mark.parametrize(
    ("title", "left"),
    [
        ("Trip to Zanzibar", "Trip"),
        ("The Zanzibar of my trip, planned", "Trip, planned"),
        ("zanzibar, trip", "Trip"),
        ("In Zanzibar", UNTITLED),
    ],
)
def test_a_title_loses_the_words_that_nobody_says_any_more(palace, title, left):
    talk = transcript("Zanzibar!", "The trip is planned.", id="z", title="Planned")
    room = mine(palace, talk)[0].room
    Room.objects.update(title=title)
    closet = Closet.objects.first()
    Closet.objects.filter(pk=closet.pk).update(title=title)
    purge(palace, text="Zanzibar!")
    assert Room.objects.get(pk=room.pk).title == left
    closet.refresh_from_db()
    assert closet.title == left.replace("conversation", "topic")
    assert "zanzibar" not in words_in_the_database()


def test_what_is_left_is_as_if_the_rest_had_never_been(palace, bob):
    never = Palace.objects.own(bob)
    for one in (BATTERY, SOURDOUGH):
        mine(never, one)
    for one in (BATTERY, SOURDOUGH, LISBON):
        mine(palace, one)
    purge(palace, conversation="lisbon")
    assert picture(palace) == picture(never)
    assert_true_bm25(palace)
    question = "Which wire does Derek use in Lisbon?"
    here, there = recall(palace, RecallRequest(question)), recall(never, RecallRequest(question))
    assert [h.drawer.text for h in here.hits] == [h.drawer.text for h in there.hits]
    assert [h.score for h in here.hits] == pytest.approx([h.score for h in there.hits], abs=1e-4)


def test_postings_of_others_keep_no_trace(lived_in):
    purge(lived_in, text__contains="Derek")
    left = set(Drawer.objects.within(lived_in).values_list("pk", flat=True))
    for row in Posting.objects.filter(palace=lived_in):
        assert set(row.drawers) <= left
    assert "derek" not in Posting.objects.filter(palace=lived_in).values_list("term", flat=True)


def test_cached_vectors_of_its_passages_are_forgotten(palace):
    long_text = "The quince tree bloomed late. " * 120
    mine(palace, transcript(long_text, "A fine tree.", id="quince"))
    drawer = Drawer.objects.get(text=long_text)
    spans = list(drawer.passages.values_list("start", "end"))
    assert len(spans) > 3
    model = model_of(active_space())
    passages = [long_text[a:b] for a, b in spans]
    embed_texts([*passages, "A fine tree."], model)
    keys = cache.keys(passages, model)
    assert CachedEmbedding.objects.filter(key__in=keys).exists()
    purge(palace, pk=drawer.pk)
    assert not CachedEmbedding.objects.filter(key__in=keys).exists()
    assert cache.look_up(cache.keys(["A fine tree."], model))


def test_vectors_of_a_drawer_that_was_never_mined_are_forgotten(palace):
    file_transcript(palace, BATTERY)
    text = BATTERY.turns[0].text
    embed_texts([text], model_of(active_space()))
    purge(palace, text=text)
    assert not cache.look_up(cache.keys([text], model_of(active_space())))


def test_passages_and_mentions_go_and_so_do_entities_named_nowhere_else(lived_in):
    derek = Entity.objects.get(slug="derek")
    lisbon = Entity.objects.get(slug="lisbon")
    purge(lived_in, conversation="battery")
    assert not Entity.objects.filter(pk=derek.pk).exists()
    assert Entity.objects.filter(pk=lisbon.pk).exists()
    assert Mention.objects.filter(entity=lisbon).exists()
    assert not Passage.objects.filter(drawer__conversation="battery").exists()


def test_an_entity_that_is_named_in_the_trash_stays(lived_in):
    third, fourth = Drawer.objects.filter(conversation="battery").order_by("position")[2:]
    move_to_trash(fourth)
    purge(lived_in, pk=third.pk)
    assert Entity.objects.filter(slug="derek").exists()


def test_places_left_with_nothing_are_removed(lived_in):
    room = Room.objects.get(external_id="sourdough")
    purge(lived_in, room__in=Room.objects.filter(wing=room.wing))
    assert not Room.objects.filter(pk=room.pk).exists()
    assert not Closet.objects.filter(room=room.pk).exists()
    assert not Wing.objects.filter(pk=room.wing_id).exists()
    assert Wing.objects.filter(number=Wing.UNSORTED).exists()


def test_places_of_what_is_still_in_the_trash_stay(lived_in):
    first, *others = Drawer.objects.filter(conversation="sourdough").order_by("position")
    for other in others:
        move_to_trash(other)
    purge(lived_in, pk=first.pk)
    assert Room.objects.filter(external_id="sourdough").exists()
    restore(lived_in, Drawer.objects.filter(conversation="sourdough"))
    assert Drawer.objects.kept().filter(conversation="sourdough").count() == 3


def test_the_unsorted_wing_stays_also_when_it_is_empty(palace):
    room = file_transcript(palace, BATTERY).room
    purge(palace, room=room)
    assert Wing.objects.get().number == Wing.UNSORTED
    assert not Room.objects.exists()


def test_a_number_is_not_given_a_second_time(lived_in):
    last = Room.objects.order_by("number").last()
    wings = Wing.objects.order_by("number").last().number
    purge(lived_in, room__in=Room.objects.filter(number=last.number))
    mine(lived_in, transcript("The piano tuner comes on Friday.", id="piano"))
    room = Room.objects.get(external_id="piano")
    assert room.number == last.number + 1
    assert room.wing.number > wings or Wing.objects.filter(number=wings).exists()
    mine(lived_in, BATTERY)
    purge(lived_in, conversation="battery", number=4)
    more = BATTERY.turns[3]
    mine(lived_in, transcript(*[turn.text for turn in BATTERY.turns[:3]], more.text, id="battery"))
    assert sorted(
        Drawer.objects.filter(conversation="battery").values_list("number", flat=True)
    ) == [1, 2, 3, 5]


def test_only_what_is_in_the_trash_is_purged(lived_in):
    run = Purge(lived_in)
    assert run.run(Drawer.objects.within(lived_in))
    assert run.count == 0
    assert Drawer.objects.within(lived_in).count() == 10
    assert not Activity.objects.filter(kind=Activity.Kind.DRAWERS_PURGED).exists()


def test_another_palace_is_left_alone(lived_in, bob):
    others = Palace.objects.own(bob)
    mine(others, BATTERY)
    Drawer.objects.within(others).update(trashed_at=timezone.now())
    before = picture(others)
    Purge(lived_in).run(Drawer.objects.filter(conversation="battery"))
    assert picture(others) == before


def test_one_run_is_one_activity_that_quotes_nothing(lived_in):
    purge(lived_in, conversation="battery")
    activity = Activity.objects.get(kind=Activity.Kind.DRAWERS_PURGED)
    assert activity.summary == "Deleted 4 drawers for good."
    assert activity.detail == {"drawers": 4}


def test_killed_between_batches_it_goes_on_where_it_was(palace):
    room = RoomFactory(wing=WingFactory(palace=palace))
    Drawer.objects.bulk_create(
        DrawerFactory.build_batch(
            BATCH + 20, palace=palace, room=room, closet=None, trashed_at=timezone.now()
        )
    )
    drawers = Drawer.objects.within(palace)
    assert not Purge(palace).run(drawers, seconds=0)
    assert drawers.count() == 20
    assert Activity.objects.get().detail == {"drawers": BATCH}
    assert Purge(palace).run(drawers, seconds=0)
    assert not drawers.exists()
    assert [a.detail["drawers"] for a in Activity.objects.all()] == [20, BATCH]
    assert not Room.objects.exists()


def test_huge_drawers_go_a_few_at_a_time(palace):
    room = RoomFactory(wing=WingFactory(palace=palace))
    for _ in range(3):
        DrawerFactory(room=room, text="word " * 500_000, trashed_at=timezone.now())
    drawers = Drawer.objects.within(palace)
    assert not Purge(palace).run(drawers, seconds=0)
    assert drawers.count() == 2


def in_trash_for(palace, days):
    drawer = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))
    drawer.trash(timezone.now() - timedelta(days=days))
    return drawer


def test_after_thirty_days_the_periodic_task_purges(palace, bob):
    kept = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))
    fresh = in_trash_for(palace, KEPT_DAYS - 1)
    in_trash_for(palace, KEPT_DAYS + 1)
    in_trash_for(Palace.objects.own(bob), KEPT_DAYS + 40)
    purge_trash()
    assert set(Drawer.objects.all()) == {kept, fresh}
    purge_trash()
    assert set(Drawer.objects.all()) == {kept, fresh}


def test_a_palace_that_cannot_be_purged_does_not_keep_others_waiting(palace, bob, caplog):
    bad = in_trash_for(palace, 50)
    good = in_trash_for(Palace.objects.own(bob), 50)
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF OLD.id = {bad.pk} THEN RAISE EXCEPTION 'refused'; END IF; RETURN OLD; END $$;
            CREATE TRIGGER refuse BEFORE DELETE ON palace_drawer
            FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
    assert purge_expired(seconds=30)
    assert list(Drawer.objects.all()) == [bad]
    assert not Drawer.objects.filter(pk=good.pk).exists()
    assert "could not be purged" in caplog.text


def test_a_purged_message_that_is_imported_again_comes_back(lived_in):
    purge(lived_in, conversation="battery")
    mine(lived_in, BATTERY)
    assert Drawer.objects.kept().filter(conversation="battery").count() == 4
    assert_true_bm25(lived_in)


def test_what_is_mined_again_after_a_purge_counts_once(palace):
    mine(palace, long_transcript(40))
    purge(palace, number__gt=20)
    postings.compact(palace)
    mine(palace, transcript("One more thing about the shed.", id="more", start=START))
    every = Posting.objects.filter(palace=palace, term=postings.EVERY)
    assert sum(len(row.drawers) for row in every) == 21
    assert analyze("shed").keys() <= set(Posting.objects.values_list("term", flat=True))


def test_everything_at_once_leaves_an_empty_palace(lived_in):
    for wing in Wing.objects.exclude(number=Wing.UNSORTED):
        move_to_trash(wing)
        Purge(lived_in).run(drawers_in(wing))
    for model in (Drawer, Room, Closet, Entity, Mention, Passage, Posting):
        assert not model.objects.exists()
    assert [len(EVERYTHING), Wing.objects.count()] == [3, 1]

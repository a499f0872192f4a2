"""Areas of life get a wing from the third conversation on, and one by one they wait for it."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection

from language.english.topics.wings import EVERYDAY
from language.extraction import WingFound
from language.transcripts import Transcript, Turn
from palace.curation.refiling import move_drawers, move_room, undo_move
from palace.curation.trash import move_to_trash, restore_drawers
from palace.curation.wings import change_wing, merge_wings, undo_merge_wings
from palace.mining.pipeline import make_wing, mine, mine_many, mine_room, suggested_wings
from palace.models import Activity, Drawer, Room, Wing
from palace.queries.places import find_by_pointer
from palace.storage.intake import known_wing, wing_for
from palace.storage.transcript_filing import file_transcript
from tests.conversations import START, transcript
from tests.curation.conftest import purge
from tests.curation.test_trash import at_once
from tests.factories import WingFactory

COOKING, CATCH_ALL = "Cooking & food", EVERYDAY.name
QUESTIONS = (
    "What can I cook with leeks and leftover rice tonight?",
    "How long do I roast a chicken of two kilos in the oven?",
    "Which sauce goes with fresh pasta and peas?",
    "How do I bake a chocolate cake without eggs?",
    "What do I season a lentil soup with?",
)
TALKS = [
    transcript(text, "Let me think about it.", id=f"talk {n}") for n, text in enumerate(QUESTIONS)
]
LAWN = transcript("How do I get rid of moss in the lawn?", "Rake it out.", id="lawn")


def wing_names(palace):
    """Of each conversation."""
    rooms = Room.objects.within(palace).order_by("started_at", "pk")
    return dict(rooms.values_list("external_id", "wing__name"))


def waiting(palace):
    return [(each.area, each.total) for each in suggested_wings(palace)]


def made(palace):
    return Activity.objects.filter(palace=palace, kind=Activity.Kind.DRAWERS_MOVED)


def test_an_area_has_its_wing_from_the_third_conversation_on(palace):
    mine(palace, LAWN)
    mine(palace, TALKS[0])
    mine(palace, TALKS[1])
    assert set(wing_names(palace).values()) == {CATCH_ALL}
    assert waiting(palace) == [(COOKING, 2), ("Home & garden", 1)]
    assert not made(palace).exists()
    pointers = [drawer.pointer for drawer in Drawer.objects.within(palace).with_place()]
    mine(palace, TALKS[2])
    assert wing_names(palace) == {
        "lawn": CATCH_ALL, "talk 0": COOKING, "talk 1": COOKING, "talk 2": COOKING
    }  # fmt: skip
    assert Wing.objects.get(palace=palace, name=COOKING).kind == Wing.Kind.TOPIC
    assert waiting(palace) == [("Home & garden", 1)]
    assert [each.summary for each in made(palace)] == ["Moved 6 drawers to a new wing."]
    for pointer in pointers:
        assert find_by_pointer(palace, pointer).pointer.room == pointer.room
    mine(palace, TALKS[3])
    assert wing_names(palace)["talk 3"] == COOKING
    assert made(palace).count() == 1


def test_three_conversations_mined_together_have_their_wing_at_once(palace):
    mine_many(palace, [LAWN, *TALKS[:3]])
    assert list(wing_names(palace).values()).count(COOKING) == 3
    assert not made(palace).exists()


def test_what_waits_comes_along_when_many_are_mined_together(palace):
    mine(palace, TALKS[0])
    mine_many(palace, TALKS[1:])
    assert set(wing_names(palace).values()) == {COOKING}
    assert [each.detail["drawers"] for each in made(palace)] == [2]


def test_a_conversation_counts_once_however_often_it_goes_on(palace):
    turns = [turn.text for turn in TALKS[0].turns]
    for length in range(1, 4):
        mine(palace, transcript(*(turns * 2)[:length], id="one"))
    assert waiting(palace) == [(COOKING, 1)]


def test_people_projects_and_agents_have_their_wings_at_once(palace):
    friends = Transcript(
        "plain",
        "friends",
        "",
        (Turn("1", "user", "Dinner?", START, "Nadia"), Turn("2", "user", "Yes!", START, "Tom")),
    )
    mine(palace, friends)
    mine(palace, transcript("The soup is done.", "Good.", id="boat", title="Efoil rebuild"))
    cook = transcript(QUESTIONS[0], "Leek rice.", id="cook")
    mine(palace, Transcript("plain", "cook", "", cook.turns, "Chef Remy"))
    assert wing_names(palace) == {
        "friends": "Nadia & Tom", "boat": "Efoil rebuild", "cook": "Chef Remy"
    }  # fmt: skip
    assert waiting(palace) == []


def test_a_wing_that_is_there_gets_the_first_conversation(palace):
    kitchen = wing_for(palace, WingFound("topic", COOKING))
    change_wing(kitchen, name="Kitchen", kind="topic")
    mine(palace, TALKS[0])
    assert wing_names(palace) == {"talk 0": "Kitchen"}


def test_a_wing_made_by_hand_gets_what_waits_with_the_next_conversation(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    hand_made = wing_for(palace, WingFound("topic", COOKING))
    assert [each.wing for each in suggested_wings(palace)] == [hand_made]
    mine(palace, LAWN)
    assert wing_names(palace) == {"talk 0": COOKING, "talk 1": COOKING, "lawn": CATCH_ALL}


def test_only_a_conversation_of_an_area_has_mining_look_for_due_wings(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    wing_for(palace, WingFound("topic", COOKING))
    mine(palace, transcript("The soup is done.", "Good.", id="boat", title="Efoil rebuild"))
    assert waiting(palace) == [(COOKING, 2)]
    mine(palace, LAWN)
    assert waiting(palace) == [("Home & garden", 1)]


@pytest.mark.django_db(transaction=True)
def test_conversations_mined_at_once_make_one_wing(palace):
    rooms = [file_transcript(palace, talk).room for talk in TALKS]
    at_once(*(lambda room=room: mine_room(room) for room in rooms))
    assert set(wing_names(palace).values()) == {COOKING}
    assert (
        Wing.objects.within(palace)
        .filter(slug=known_wing(palace, WingFound("topic", COOKING)).slug)
        .count()
        == 1
    )
    assert Drawer.objects.within(palace).count() == 2 * len(TALKS)
    assert not Drawer.objects.unmined().exists()
    assert len({each.detail["wing"] for each in made(palace)}) == 1


@pytest.mark.django_db(transaction=True)
def test_it_is_made_and_accepted_at_once(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    room = file_transcript(palace, TALKS[2]).room
    at_once(lambda: mine_room(room), *[lambda: make_wing(palace, COOKING)] * 3)
    assert set(wing_names(palace).values()) == {COOKING}
    assert sum(each.detail["drawers"] for each in made(palace)) in (4, 6)


def test_broken_off_while_the_wing_is_made_it_is_made_by_the_next_run(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    room = file_transcript(palace, TALKS[2]).room
    with connection.cursor() as cursor:
        # The second of the rooms is refused, when the wing is there and the first has moved.
        cursor.execute("""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.external_id = 'talk 1' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW;
            END $$;
            CREATE TRIGGER refuse BEFORE UPDATE OF wing_id ON palace_room
            FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
    with pytest.raises(DatabaseError, match="refused"):
        mine_room(room)
    assert wing_names(palace) == {"talk 0": CATCH_ALL, "talk 1": CATCH_ALL, "talk 2": "Unsorted"}
    assert not Wing.objects.within(palace).filter(name=COOKING).exists()
    assert waiting(palace) == [(COOKING, 2)]
    assert not made(palace).exists()
    # So the sweep finds it, which looks for such drawers.
    assert Drawer.objects.within(palace).unmined().count() == 2
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER refuse ON palace_room")
    for _ in range(2):
        mine_room(room)
        assert set(wing_names(palace).values()) == {COOKING}
        assert [each.detail["drawers"] for each in made(palace)] == [6]


def test_undone_it_is_not_made_again(palace):
    for talk in TALKS[:3]:
        mine(palace, talk)
    [activity] = made(palace)
    assert undo_move(palace, activity)[0] == 6
    assert not Wing.objects.within(palace).filter(name=COOKING).exists()
    mine(palace, TALKS[3])
    assert set(wing_names(palace).values()) == {CATCH_ALL}
    assert waiting(palace) == []
    mine_many(
        palace, [transcript(*["Bread and soup, please."] * 2, id=f"more {n}") for n in range(3)]
    )
    assert set(wing_names(palace).values()) == {CATCH_ALL}


def test_a_rejected_area_waits_until_a_person_makes_its_wing(palace):
    mine(palace, TALKS[0])
    palace.reject_areas([COOKING])
    assert waiting(palace) == []
    for talk in TALKS[1:4]:
        mine(palace, talk)
    assert set(wing_names(palace).values()) == {CATCH_ALL}
    wing_for(palace, WingFound("topic", COOKING))
    mine(palace, TALKS[4])
    names = wing_names(palace)
    assert names.pop("talk 4") == COOKING
    assert set(names.values()) == {CATCH_ALL}
    palace.reject_areas([COOKING], are_rejected=False)
    assert waiting(palace) == [(COOKING, 4)]


def test_an_accepted_suggestion_moves_what_waits_and_is_undone(palace):
    for talk in (*TALKS[:2], LAWN):
        mine(palace, talk)
    activity = make_wing(palace, COOKING)
    assert wing_names(palace) == {"talk 0": COOKING, "talk 1": COOKING, "lawn": CATCH_ALL}
    assert make_wing(palace, COOKING) is None
    undo_move(palace, activity)
    assert set(wing_names(palace).values()) == {CATCH_ALL}
    assert waiting(palace) == [("Home & garden", 1)]
    assert undo_move(palace, activity) == (0, [])


def test_what_a_person_has_moved_stays_there(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    mums = WingFactory(palace=palace, name="Mum")
    move_room(Room.objects.get(external_id="talk 0"), mums)
    assert waiting(palace) == [(COOKING, 1)]
    mine(palace, TALKS[2])
    assert set(wing_names(palace).values()) == {"Mum", CATCH_ALL}
    mine(palace, TALKS[3])
    names = wing_names(palace)
    assert names.pop("talk 0") == "Mum"
    assert set(names.values()) == {COOKING}


def test_what_is_in_the_trash_does_not_count(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    move_to_trash(Room.objects.get(external_id="talk 0"))
    mine(palace, TALKS[2])
    assert waiting(palace) == [(COOKING, 2)]
    restore_drawers(palace, Drawer.objects.within(palace).trashed())
    mine(palace, LAWN)
    assert wing_names(palace)["talk 0"] == COOKING


def test_a_catch_all_wing_that_was_merged_with_an_areas_has_nothing_to_suggest(palace):
    mine(palace, TALKS[0])
    catch_all = Wing.objects.get(palace=palace, name=CATCH_ALL)
    merge_wings(catch_all, wing_for(palace, WingFound("topic", COOKING)))
    assert waiting(palace) == []
    assert make_wing(palace, COOKING) is None
    mine(palace, TALKS[1])
    assert set(wing_names(palace).values()) == {COOKING}


def test_what_a_person_puts_back_into_the_catch_all_wing_stays_there(palace):
    for talk in (*TALKS[:3], LAWN):
        mine(palace, talk)
    room = Room.objects.get(external_id="talk 0")
    move_room(room, Wing.objects.get(palace=palace, name=CATCH_ALL))
    mine(palace, TALKS[3])
    assert wing_names(palace)["talk 0"] == CATCH_ALL
    lawn = Room.objects.get(external_id="lawn")
    mums = WingFactory(palace=palace, name="Mum")
    move_room(lawn, mums)
    move_room(Room.objects.get(pk=lawn.pk), Wing.objects.get(palace=palace, name=CATCH_ALL))
    assert waiting(palace) == []
    for activity in made(palace).filter(detail__has_key="undo").order_by("-pk")[:2]:
        undo_move(palace, activity)
    assert waiting(palace) == [("Home & garden", 1)]


def test_a_catch_all_wing_that_was_emptied_comes_back_as_it_was(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    before = Wing.objects.get(palace=palace, name=CATCH_ALL)
    change_wing(before, name="This and that", kind="topic")
    Wing.objects.filter(pk=before.pk).update(kept_months=7, never=["Tom"])
    accepted = make_wing(palace, COOKING)
    assert not Wing.objects.filter(pk=before.pk).exists()
    mine(palace, LAWN)
    after = Wing.objects.get(pk=before.pk)
    assert (after.name, after.number, after.uuid) == ("This and that", before.number, before.uuid)
    assert (after.kept_months, after.never) == (7, ["Tom"])
    assert wing_names(palace)["lawn"] == "This and that"
    assert undo_move(palace, accepted)[0] == 4
    assert set(wing_names(palace).values()) == {"This and that"}


def test_a_catch_all_wing_is_made_anew_where_the_emptied_ones_name_is_taken(palace):
    mine(palace, TALKS[0])
    change_wing(Wing.objects.get(palace=palace, name=CATCH_ALL), name="Misc", kind="topic")
    make_wing(palace, COOKING)
    WingFactory(palace=palace, name="Misc", slug="misc")
    mine(palace, LAWN)
    assert wing_names(palace) == {"talk 0": COOKING, "lawn": CATCH_ALL}


@pytest.mark.parametrize("together", [False, True])
def test_nothing_leaves_a_catch_all_wing_with_rules_unless_a_person_says_so(palace, together):
    mine(palace, TALKS[0])
    Wing.objects.filter(palace=palace, name=CATCH_ALL).update(never=["Tom"])
    for talks in [TALKS[1:4]] if together else [[talk] for talk in TALKS[1:4]]:
        mine_many(palace, talks)
    assert set(wing_names(palace).values()) == {CATCH_ALL}
    assert waiting(palace) == [(COOKING, 4)]
    make_wing(palace, COOKING)
    assert set(wing_names(palace).values()) == {COOKING}


def test_a_wing_called_as_the_catch_all_is_found_before_one_that_has_its_name_besides(palace):
    WingFactory(palace=palace, name="Misc").aliases.create(palace=palace, slug="everyday-talk")
    catch_all = WingFactory(palace=palace, name=CATCH_ALL, slug="everyday-talk")
    mine(palace, TALKS[0])
    assert Room.objects.get(external_id="talk 0").wing == catch_all
    assert waiting(palace) == [(COOKING, 1)]


def test_out_of_a_merged_wing_mining_takes_nothing(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    catch_all = Wing.objects.get(palace=palace, name=CATCH_ALL)
    merged = merge_wings(catch_all, WingFactory(palace=palace, name="Mine"))
    assert waiting(palace) == []
    wing_for(palace, WingFound("topic", COOKING))
    mine(palace, LAWN)
    assert wing_names(palace) == {"talk 0": "Mine", "talk 1": "Mine", "lawn": "Mine"}
    undo_merge_wings(palace, merged.activity)
    assert waiting(palace) == [(COOKING, 2)]


def test_a_move_to_a_wing_that_was_there_is_undone_for_good(palace):
    for talk in TALKS[:2]:
        mine(palace, talk)
    change_wing(wing_for(palace, WingFound("topic", COOKING)), name="Kitchen", kind="topic")
    mine(palace, LAWN)
    [activity] = made(palace)
    assert activity.summary == "Moved 4 drawers to another wing."
    undo_move(palace, activity)
    palace.refresh_from_db()
    assert palace.rejected_areas == []
    mine(palace, transcript("How do I prune the roses?", "In spring.", id="roses"))
    assert set(wing_names(palace).values()) == {CATCH_ALL}


def test_undone_after_a_fourth_conversation_the_wing_stays_with_that(palace):
    for talk in TALKS[:4]:
        mine(palace, talk)
    [activity] = made(palace)
    undo_move(palace, activity)
    mine(palace, TALKS[4])
    assert {name for name, wing in wing_names(palace).items() if wing == COOKING} == {
        "talk 3", "talk 4"
    }  # fmt: skip
    assert waiting(palace) == []


def test_an_accepted_area_is_rejected_no_longer(palace):
    mine(palace, TALKS[0])
    palace.reject_areas([COOKING])
    make_wing(palace, COOKING)
    palace.refresh_from_db()
    assert palace.rejected_areas == []


def test_a_purge_leaves_no_name_of_a_made_wing(palace):
    for talk in TALKS[:3]:
        mine(palace, talk)
    purge(palace, conversation__startswith="talk")
    assert not Wing.objects.within(palace).filter(name=COOKING).exists()
    said = Activity.objects.filter(palace=palace).values_list("summary", "detail")
    assert COOKING not in str(list(said))


def test_a_room_that_was_joined_and_is_taken_out_again_waits_as_before(palace):
    mine(palace, TALKS[0])
    room = Room.objects.get(external_id="talk 0")
    mums = WingFactory(palace=palace, name="Mum")
    move_drawers(palace, Drawer.objects.filter(room=room, position=0), mums)
    move_room(room, mums)
    assert waiting(palace) == []
    undo_move(palace, made(palace).latest("pk"))
    assert waiting(palace) == [(COOKING, 1)]

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.utils import timezone

from language.transcripts import Transcript, Turn
from palace.curation.entities import merge_entities
from palace.curation.refiling import move_room
from palace.curation.trash import move_to_trash
from palace.mining.pipeline import mine
from palace.models import Drawer, Room
from palace.queries.floor_plan import FLOOR, MOST_DEPTH
from palace.recall import RecallRequest, recall
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    MentionFactory,
    RoomFactory,
    WingFactory,
)
from tests.views.conftest import moment

MEMORY = "/memory/"
LARGEST_PAGE = 60_000


def furnished(wing, rooms=1, **values):
    made = RoomFactory.create_batch(rooms, wing=wing, **values)
    for room in made:
        DrawerFactory(room=room, closet=None)
    return made


def drawn(response):
    """What a screen reader hears of each room, in order."""
    return re.findall(r"<title>([^<]+, [^<]+)</title><rect", response.text)


def slots(wing):
    return dict(Room.objects.filter(wing=wing).values_list("title", "slot"))


def at(room, text):
    """Its corner on the plan."""
    found = re.search(rf'<title>{room.title}, [^<]+</title><rect x="([^"]+)" y="([^"]+)"', text)
    return found and found.groups()


def test_the_palace_opens_on_its_plan_and_each_room_is_a_link_with_a_name(alices, room, drawer):
    response = alices.get(MEMORY)
    assert drawn(response) == ["Evening by the lake, 1 Jan 2025, 1 message"]
    assert f'<a href="{room.get_absolute_url()}" class="plan-room' in response.text
    assert 'role="list" aria-label="Rooms of Efoil rebuild"' in response.text


def test_the_list_is_an_equal_and_keeps_the_search(alices, drawer):
    response = alices.get(MEMORY, {"q": "wire", "view": "list"})
    assert drawn(response) == []
    assert f'<a href="{MEMORY}?q=wire">Plan</a>' in response.text


def test_rooms_are_placed_outward_in_the_order_they_began(alices, wing):
    furnished(wing, title="Later", started_at=moment(2025, 2))
    furnished(wing, title="Sooner", started_at=moment(2025, 1))
    alices.get(MEMORY)
    assert slots(wing) == {"Sooner": 0, "Later": 1}


def test_a_room_never_moves_whatever_is_filed_or_trashed_around_it(alices, wing):
    rooms = furnished(wing, 3)
    before = alices.get(MEMORY).text
    [deep] = furnished(wing, started_at=moment(2020))
    DrawerFactory.create_batch(20, room=deep, closet=None)
    rooms[0].drawers.get().trash()
    after = alices.get(MEMORY).text
    assert at(rooms[0], after) is None
    assert [at(room, after) for room in rooms[1:]] == [at(room, before) for room in rooms[1:]]


def test_a_room_that_is_refiled_gets_a_new_place_and_all_others_stay(alices, palace, wing):
    first, second, third = furnished(wing, 3)
    other = WingFactory(palace=palace)
    [resident] = furnished(other)
    alices.get(MEMORY)
    move_room(first, other)
    alices.get(MEMORY)
    assert slots(wing) == {second.title: 1, third.title: 2}
    assert slots(other) == {resident.title: 0, first.title: 1}


def test_rooms_are_deeper_by_their_messages_and_tinted_by_their_age(alices, wing):
    [deep] = furnished(wing, started_at=moment(2020), ended_at=moment(2020))
    DrawerFactory.create_batch(8, room=deep, closet=None)
    now = timezone.now()
    [fresh] = furnished(wing, started_at=now, ended_at=now)
    text = alices.get(MEMORY).text
    depth = {
        room: float(re.search(rf"{room.title}, .*?height=\"([^\"]+)\"", text)[1])
        for room in (deep, fresh)
    }
    assert depth[deep] > depth[fresh]
    assert f'{fresh.get_absolute_url()}" class="plan-room age-0"' in text
    assert f'{deep.get_absolute_url()}" class="plan-room age-4"' in text


def test_long_conversations_are_told_apart_by_their_depth(alices, wing):
    rooms = furnished(wing, 4)
    for room, count in zip(rooms, (1, 42, 400, 4000), strict=True):
        Room.objects.filter(pk=room.pk).update(kept_count=count)
    text = alices.get(MEMORY).text
    depths = [float(re.search(rf"{room.title}, .*?height=\"([^\"]+)\"", text)[1]) for room in rooms]
    assert all(deeper - depth >= 8 for depth, deeper in pairwise(depths))
    assert depths[-1] <= MOST_DEPTH


def test_facts_are_dots_and_people_in_common_are_doorways(alices, palace, wing):
    # Places above the corridor are even ones: the first and the third room are neighbours.
    rooms = furnished(wing, 3)
    anna = EntityFactory(palace=palace, name="Anna")
    for room in rooms[::2]:
        MentionFactory(entity=anna, drawer=room.drawers.get())
    fact = FactFactory(subject=EntityFactory(palace=palace))
    EvidenceFactory(fact=fact, drawer=rooms[1].drawers.get())
    response = alices.get(MEMORY)
    assert "1 fact" in drawn(response)[1]
    assert response.text.count("<circle") == 1
    assert re.search(r'class="plan-doorway" d="M50 [^M"]+"', response.text)


def test_doorways_and_months_follow_what_is_filed_deleted_and_merged(alices, palace, wing):
    rooms = furnished(wing, 3)
    anna, ann = (EntityFactory(palace=palace, name=name) for name in ("Anna", "Ann"))
    MentionFactory(entity=anna, drawer=rooms[0].drawers.get())
    MentionFactory(entity=ann, drawer=rooms[2].drawers.get())
    before = alices.get(MEMORY)
    assert "plan-doorway" not in before.text
    merge_entities(palace, anna, ann)
    merged = alices.get(MEMORY)
    assert "plan-doorway" in merged.text
    move_to_trash(rooms[2].drawers.get())
    after = alices.get(MEMORY)
    assert "plan-doorway" not in after.text
    assert (before.context["histogram"].most, after.context["histogram"].most) == (3, 2)


def test_a_stranger_sees_no_room(bobs, drawer):
    assert drawn(bobs.get(MEMORY)) == []


def test_a_wing_of_many_rooms_has_floors_and_shows_the_newest(alices, wing):
    rooms = furnished(wing, FLOOR + 2)
    overview = alices.get(MEMORY)
    assert "floor 2 of 2" in overview.text
    assert len(drawn(overview)) == 2
    page = alices.get(wing.get_absolute_url(), {"floor": "1"})
    assert len(drawn(page)) == FLOOR
    assert rooms[0].title in drawn(page)[0]
    assert 'href="?floor=1" aria-label="Floor 1" aria-current="page"' in page.text


@pytest.mark.parametrize("floor", ["0", "-1", "99999", "9" * 400, "x", "²"])
def test_a_floor_that_is_not_there_is_the_nearest(alices, wing, floor):
    furnished(wing, 2)
    assert len(drawn(alices.get(wing.get_absolute_url(), {"floor": floor}))) == 2


def test_a_large_palace_folds_its_wings_and_stays_small(alices, palace):
    for number in range(40):
        furnished(WingFactory(palace=palace, name=f"Wing {number:02}"), 12)
    alices.get(MEMORY)
    response = alices.get(MEMORY)
    assert "More wings" in response.text
    assert "Wing 39" in response.text
    assert len(response.content) <= LARGEST_PAGE


def test_rooms_just_imported_are_read_a_few_times_each(alices, palace):
    rooms = 60
    with connection.cursor() as cursor:
        # Now the planner takes the table for empty, as right after an import.
        cursor.execute("ANALYZE palace_room")
        RoomFactory.create_batch(rooms, wing=WingFactory(palace=palace))
        before = rows_read(cursor)
        alices.get(MEMORY)
        assert rows_read(cursor) - before < 20 * rooms


def rows_read(cursor):
    cursor.execute(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) "
        "FROM pg_stat_xact_user_tables WHERE relid = 'palace_room'::regclass"
    )
    [(count,)] = cursor.fetchall()
    return count


def test_queries_do_not_grow_with_rooms(alices, palace, drawer, django_assert_max_num_queries):
    for _ in range(5):
        furnished(WingFactory(palace=palace), 4)
    alices.get(MEMORY)
    with django_assert_max_num_queries(17):
        alices.get(MEMORY, {"day": "2025-06-01"})


def test_a_door_stands_open_into_each_room_that_is_there(alices, wing):
    furnished(wing, 2)
    [late] = furnished(wing, started_at=moment(2025, 5), ended_at=moment(2025, 5))
    Drawer.objects.filter(room=late).update(said_at=moment(2025, 5))
    leaves = re.compile('class="plan-leaf" d="([^"]*)"')
    first_two = "M21 66v-10q10 0 10 10M21 82v10q10 0 10 -10"
    assert leaves.findall(alices.get(MEMORY).text) == [first_two + "M69 66v-10q10 0 10 10"]
    assert leaves.findall(alices.get(MEMORY, {"day": "2025-03-01"}).text) == [first_two]


def test_on_an_earlier_day_later_rooms_are_outlines(alices, wing):
    [early] = furnished(wing, title="Early", started_at=moment(2025, 1))
    DrawerFactory(room=early, closet=None, said_at=moment(2025, 5))
    Room.objects.filter(pk=early.pk).update(ended_at=moment(2025, 5))
    late = RoomFactory(
        wing=wing, title="Late", started_at=moment(2025, 5), ended_at=moment(2025, 5)
    )
    DrawerFactory(room=late, closet=None, said_at=moment(2025, 5))
    early_name, late_name = drawn(alices.get(MEMORY, {"day": "2025-03-01"}))
    assert early_name == "Early, 1 Jan – 1 May 2025, 1 message"
    assert late_name.endswith("later")


def test_a_wall_of_two_outlines_is_drawn_once(alices, wing):
    """Else the dashes of one fill the gaps of the other's."""
    deep, *_ = rooms = furnished(wing, 4, started_at=moment(2025, 5), ended_at=moment(2025, 5))
    Drawer.objects.update(said_at=moment(2025, 5))
    Room.objects.filter(pk=deep.pk).update(kept_count=400)
    walls = [upright(path) for path in outlines(alices.get(MEMORY, {"day": "2025-03-01"}))]
    assert len(walls) == len(rooms)
    # Two above the corridor and two below it; the first is deeper than its neighbour.
    assert [len(each) for each in walls] == [2, 2, 1, 1]
    Room.objects.filter(pk=deep.pk).update(kept_count=1)
    Room.objects.filter(pk=rooms[2].pk).update(kept_count=400)
    walls = [upright(path) for path in outlines(alices.get(MEMORY, {"day": "2025-03-01"}))]
    shared, beyond = walls[0][0], walls[2][1]
    assert shared[0] == beyond[0]
    assert shared[2] == beyond[1]


def outlines(response):
    return re.findall(r'<path d="(M[^"]+)"/></a>', response.text)


def upright(path):
    """Place, beginning and end of each wall across the corridor."""
    place, walls, at = 0.0, [], 0.0
    for letter, *numbers in re.findall(r"([MHV])(\S+?)(?: ([\d.]+))?(?=[MHV]|$)", path):
        first, second = (float(each) if each else None for each in numbers)
        if letter == "V":
            walls.append((place, at, first))
            at = first
        else:
            place, at = first, at if second is None else second
    return walls


def test_on_a_day_the_plan_lies_as_it_does_today(alices, wing):
    early, late = furnished(wing, 1, started_at=moment(2025, 1)) + furnished(
        wing, 1, started_at=moment(2025, 5)
    )
    DrawerFactory.create_batch(9, room=early, closet=None, said_at=moment(2025, 5))
    DrawerFactory(room=late, closet=None, said_at=moment(2025, 5))
    today, then = alices.get(MEMORY).text, alices.get(MEMORY, {"day": "2025-03-01"}).text
    size = r'<svg class="plan-floor" width="\d+" height="[\d.]+"'
    assert re.findall(size, today) == re.findall(size, then)
    assert at(late, today) == at(late, then)


def test_a_bad_day_is_an_error_beside_its_field(alices, drawer):
    response = alices.get(MEMORY, {"day": "yesterday"})
    assert response.status_code == 400
    assert "“yesterday” is no day. Write it like 2024-05-31." in response.text
    assert 'value="yesterday"' in response.text


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_the_last_day_of_all_are_days(alices, drawer, day):
    assert alices.get(MEMORY, {"day": day}).status_code == 200


def test_the_histogram_spans_the_first_month_to_today_without_the_trash(alices, drawer):
    DrawerFactory(room=drawer.room, said_at=moment(2019, 4)).trash()
    text = alices.get(MEMORY).text
    assert f"Messages a month, from January 2025 to {timezone.localdate():%B %Y}; 1 at most" in text


class TestHits:
    """A room that mining filed, with others around it."""

    @pytest.fixture
    def mined(self, palace):
        turns = (
            Turn("0", "user", "The boat is blue and lies at the lake.", moment(2025, 1)),
            Turn("1", "user", "I painted the boat red.", moment(2025, 6)),
        )
        mine(palace, Transcript("plain", "boat", "The boat", turns))
        return Room.objects.get(palace=palace)

    def test_a_search_lights_the_rooms_it_found_with_the_places_of_the_hits(self, alices, mined):
        furnished(mined.wing, title="Elsewhere")
        response = alices.get(MEMORY, {"q": "Which colour is the boat?"})
        lit = re.findall(r'class="plan-room age-\d lit"><title>([^<]+)<', response.text)
        assert [name.split(", ")[-1] for name in lit] == ["hit 1 and 2"]

    def test_a_recall_lights_what_it_found_and_lists_it(self, alices, palace, mined):
        found = recall(palace, RecallRequest("Which colour is the boat?"))
        best = found.hits[0].drawer
        response = alices.get(MEMORY, {"recall": found.uuid})
        assert "Where this came from" in response.text
        assert drawn(response)[0].endswith("hit 1 and 2")
        assert f'aria-hidden="true">1</span><a href="{best.get_absolute_url()}">' in response.text
        best.trash()
        later = alices.get(MEMORY, {"recall": found.uuid})
        assert drawn(later)[0].endswith("hit 2")

    def test_a_strangers_recall_is_not_found(self, alices, bobs, palace, mined):
        found = recall(palace, RecallRequest("Which colour is the boat?"))
        assert bobs.get(MEMORY, {"recall": found.uuid}).status_code == 404
        assert alices.get(MEMORY, {"recall": "nonsense"}).status_code == 404

    def test_a_hit_on_another_floor_brings_that_floor(self, alices, mined):
        alices.get(MEMORY)
        furnished(mined.wing, FLOOR + 1)
        assert "floor 2 of 2" in alices.get(MEMORY).text
        assert "floor 1 of 2" in alices.get(MEMORY, {"q": "boat"}).text

    def test_the_plan_of_a_folded_wing_that_was_hit_is_drawn(self, alices, palace, mined):
        for number in range(15):
            furnished(WingFactory(palace=palace, name=f"A {number:02}"), 12)
        assert mined.get_absolute_url() not in alices.get(MEMORY).text
        lit = [name for name in drawn(alices.get(MEMORY, {"q": "boat"})) if "hit 1" in name]
        assert [name.split(",")[0] for name in lit] == ["The boat"]

    def test_a_search_on_a_day_finds_what_was_said_by_then(self, alices, mined):
        asked = {"q": "Which colour is the boat?", "day": "2025-03-01"}
        found = re.sub(r"<[^>]+>", "", alices.get(MEMORY, asked).text)
        assert "is blue" in found
        assert "painted" not in found


class TestFactsOfADay:
    @pytest.fixture
    def moved(self, user, room):
        """Porto, said in January; Lisbon, said in June to be so since March."""
        porto = FactFactory(subject=user, text="User lives in Porto", valid_from=moment(2025, 1))
        lisbon = FactFactory(subject=user, text="User lives in Lisbon", valid_from=moment(2025, 3))
        for fact, day in ((porto, moment(2025, 1, 5)), (lisbon, moment(2025, 6))):
            EvidenceFactory(fact=fact, drawer=DrawerFactory(room=room, said_at=day))
        porto.retired_at, porto.fate = moment(2025, 6), porto.Fate.SUPERSEDED
        porto.valid_to = moment(2025, 3)
        porto.save()

    @pytest.mark.parametrize(
        ("basis", "day", "known"),
        [
            ("said", "2025-04-01", "You live in Porto"),
            ("true", "2025-04-01", "You live in Lisbon"),
            ("said", "2025-07-01", "You live in Lisbon"),
            ("said", "2025-02-01", "You live in Porto"),
        ],
    )
    def test_said_by_then_and_true_then_differ(self, alices, moved, basis, day, known):
        places = ["You live in Porto", "You live in Lisbon"]
        for address in (
            f"{MEMORY}?day={day}&basis={basis}",
            f"/memory/facts/?as_of={day}&clock={basis}",
        ):
            text = alices.get(address).text
            assert [place for place in places if place in text] == [known]

    @pytest.mark.parametrize(
        ("basis", "day", "when"),
        [
            ("said", "2025-02-01", "since 1 Jan 2025"),
            ("true", "2025-02-01", "1 Jan 2025 – 1 Mar 2025"),
        ],
    )
    def test_an_end_that_was_said_later_is_not_shown_by_then(self, alices, moved, basis, day, when):
        for address in (
            f"{MEMORY}?day={day}&basis={basis}",
            f"/memory/facts/?as_of={day}&clock={basis}",
        ):
            text = alices.get(address).text
            after = text.partition("You live in Porto</a>")[2]
            shown = re.search(r"(since )?1 Jan 2025( – 1 Mar 2025)?", after)
            assert shown.group() == when

    def test_before_any_word_nothing_is_known(self, alices, moved):
        text = alices.get(MEMORY, {"day": "2024-12-31"}).text
        assert "No lasting fact is known of that day." in text

    def test_what_counts_is_said(self, alices, moved):
        said = alices.get(MEMORY, {"day": "2025-04-01"}).text
        true = alices.get(MEMORY, {"day": "2025-04-01", "basis": "true"}).text
        assert "Only words said until that day count" in said
        assert "also by words said later" in true

    def test_a_version_corrected_by_hand_was_never_said(self, alices, user, moved):
        FactFactory(
            subject=user,
            text="User lives in Rome",
            recorded_at=moment(2025, 1),
            retired_at=moment(2025, 9),
            fate="corrected",
        )
        assert "Rome" not in alices.get(MEMORY, {"day": "2025-04-01"}).text

    def test_people_are_those_named_in_the_months_before(self, alices, palace, room):
        for name, day in (("Anna", moment(2025, 2)), ("Bert", moment(2024, 2))):
            drawer = DrawerFactory(room=room, said_at=day)
            MentionFactory(entity=EntityFactory(palace=palace, name=name), drawer=drawer)
        text = alices.get(MEMORY, {"day": "2025-03-01"}).text
        assert ">Anna</a>" in text
        assert ">Bert</a>" not in text


def test_a_room_begun_a_moment_ago_is_not_later(alices, wing):
    now = timezone.now()
    furnished(wing, title="Fresh", started_at=now - timedelta(minutes=1), ended_at=now)
    assert "later" not in drawn(alices.get(MEMORY))[0]

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from palace.views.shared.query_params import PAGE_SIZE
from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory

HTMX = {"HX-Request": "true"}


def names(response):
    return re.findall(r'class="name">([^<]+)<', response.text)


def test_a_wing_shows_its_rooms_newest_first_with_counts(alices, wing, drawer):
    later = RoomFactory(wing=wing, title="Later", started_at=datetime(2025, 5, 1, tzinfo=UTC))
    DrawerFactory(room=later)
    DrawerFactory(room=later, closet=None)
    response = alices.get(wing.get_absolute_url())
    assert names(response) == ["Later", "Evening by the lake"]
    assert "2 drawers" in response.text


def test_a_room_without_kept_drawers_is_not_listed(alices, wing, drawer):
    drawer.trash()
    response = alices.get(wing.get_absolute_url())
    assert names(response) == []
    assert "There is nothing in this wing any more." in response.text


def test_a_room_page_shows_what_its_closets_hold(alices, room, drawer):
    response = alices.get(room.get_absolute_url())
    assert names(response) == ["Battery wiring"]
    assert "The wire overheated." in response.text


def test_a_room_as_a_branch_shows_its_closets_closed(alices, room, drawer):
    response = alices.get(room.get_absolute_url(), headers=HTMX)
    assert names(response) == ["Battery wiring"]
    assert "The wire overheated." not in response.text
    assert f'hx-get="{drawer.closet.get_absolute_url()}"' in response.text


def test_a_long_rooms_page_leaves_its_closets_closed(alices, closet):
    DrawerFactory.create_batch(PAGE_SIZE + 1, room=closet.room, closet=closet, text="Many of us.")
    response = alices.get(closet.room.get_absolute_url())
    assert names(response) == ["Battery wiring"]
    assert "Many of us." not in response.text


def test_drawers_without_a_closet_stand_by_themselves(alices, room):
    DrawerFactory(room=room, closet=None, text="Just a note.")
    response = alices.get(room.get_absolute_url())
    assert "Not in a closet" in response.text
    assert "Just a note." in response.text


def test_a_closet_shows_its_drawers_in_the_order_they_were_said(alices, closet):
    for position in (2, 0, 1):
        DrawerFactory(room=closet.room, closet=closet, position=position, text=f"Word {position}.")
    response = alices.get(closet.get_absolute_url())
    assert re.findall(r"Word \d", response.text) == ["Word 0", "Word 1", "Word 2"]


def test_a_closet_shows_the_pointer_and_tags_of_each_drawer(alices, closet, drawer):
    response = alices.get(closet.get_absolute_url())
    assert '§ W-9042/R-9011/D-9007</span> <span class="aaak-tags">@p Derek</span>' in response.text


def test_a_trashed_drawer_is_in_no_list(alices, closet, drawer):
    drawer.trash()
    assert drawer.text not in alices.get(closet.get_absolute_url()).text
    assert names(alices.get(closet.room.get_absolute_url())) == []


@pytest.mark.parametrize("place", ["wing", "room", "closet"])
def test_htmx_gets_only_the_branch(alices, drawer, place):
    places = {"wing": drawer.room.wing, "room": drawer.room, "closet": drawer.closet}
    response = alices.get(places[place].get_absolute_url(), headers=HTMX)
    assert response.text.lstrip().startswith('<ul class="tree')
    assert "<h1" not in response.text


def fill_wing(wing, rooms):
    start = datetime(2025, 1, 1, tzinfo=UTC)
    for number in range(rooms):
        title = f"Room no {number:03}"
        DrawerFactory(
            room=RoomFactory(wing=wing, title=title, started_at=start - timedelta(days=number))
        )


def test_many_rooms_come_a_page_at_a_time(alices, wing):
    fill_wing(wing, PAGE_SIZE + 3)
    first = alices.get(wing.get_absolute_url())
    assert len(names(first)) == PAGE_SIZE
    assert f"Show 3 more of {PAGE_SIZE + 3} rooms" in first.text
    second = alices.get(wing.get_absolute_url(), {"page": 2})
    assert names(second) == [f"Room no {number:03}" for number in range(PAGE_SIZE, PAGE_SIZE + 3)]
    assert "Back to page 1 of 2" in second.text


@pytest.mark.parametrize("page", ["0", "-1", "99", "two", ""])
def test_a_page_that_is_none_shows_the_nearest(alices, wing, drawer, page):
    assert names(alices.get(wing.get_absolute_url(), {"page": page})) == [drawer.room.title]


def test_many_loose_drawers_come_a_page_at_a_time(alices, room):
    for position in range(PAGE_SIZE + 1):
        DrawerFactory(room=room, closet=None, position=position, text=f"Loose {position:03}")
    last = f"Loose {PAGE_SIZE:03}"
    assert last not in alices.get(room.get_absolute_url()).text
    rest = alices.get(room.get_absolute_url(), {"loose": 2}, headers=HTMX)
    assert re.findall(r"Loose \d+", rest.text) == [last]


def test_the_number_of_queries_does_not_grow_with_the_rooms(
    alices, wing, django_assert_max_num_queries
):
    fill_wing(wing, 30)
    alices.get(wing.get_absolute_url())  # Places the rooms on the plan.
    with django_assert_max_num_queries(13):
        alices.get(wing.get_absolute_url())


def test_the_number_of_queries_does_not_grow_with_the_closets(
    alices, room, django_assert_max_num_queries
):
    for _ in range(10):
        closet = ClosetFactory(room=room)
        DrawerFactory.create_batch(3, room=room, closet=closet)
    with django_assert_max_num_queries(11):
        alices.get(room.get_absolute_url())


def test_the_number_of_queries_does_not_grow_with_the_drawers(
    alices, closet, django_assert_max_num_queries
):
    DrawerFactory.create_batch(30, room=closet.room, closet=closet)
    with django_assert_max_num_queries(7):
        alices.get(closet.get_absolute_url())


def test_a_huge_drawer_is_listed_by_its_beginning_only(alices, closet):
    DrawerFactory(room=closet.room, closet=closet, text="word " * 100_000)
    assert len(alices.get(closet.get_absolute_url()).content) < 20_000


def test_a_drawer_of_white_space_still_has_something_to_click(alices, closet):
    DrawerFactory(room=closet.room, closet=closet, text=" \n\t ")
    assert "(nothing visible)" in alices.get(closet.get_absolute_url()).text


def test_another_palaces_room_in_the_same_wing_number_is_not_mixed_in(alices, wing, drawer, bob):
    elsewhere = WingFactory(palace__owner=bob, number=wing.number)
    DrawerFactory(room=RoomFactory(wing=elsewhere, title="Bob’s"))
    assert names(alices.get(wing.get_absolute_url())) == [drawer.room.title]

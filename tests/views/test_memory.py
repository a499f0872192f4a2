from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from palace.models import Activity, Palace, Wing
from tests.factories import DrawerFactory, RoomFactory, WingFactory

MEMORY = "/memory/"
LIST = {"view": "list"}


def wing_names(response):
    return re.findall(r'class="name">([^<]+)<', response.text)


def test_the_front_door_leads_to_the_chat(alices):
    assert alices.get("/").url == reverse("chat")


def test_an_empty_palace_says_how_it_fills(alices):
    text = alices.get(MEMORY).text
    for address in (f"{reverse('chat')}#text", reverse("imports")):
        assert f'class="button" href="{address}"' in text
    assert f'action="{reverse("sample_load")}"' in text


def test_wings_come_by_name_with_their_counts_and_kind(alices, drawer):
    DrawerFactory(room=drawer.room, closet=None)
    other = RoomFactory(wing=WingFactory(palace=drawer.palace, name="alpine walks", kind="project"))
    DrawerFactory(room=other)
    response = alices.get(MEMORY, LIST)
    assert wing_names(response) == ["alpine walks", "Efoil rebuild"]
    assert "1 room, 2 drawers" in response.text
    assert "Project" in response.text
    assert "2 wings, 2 rooms and 3 drawers" in response.text


def test_the_unsorted_wing_comes_last_and_only_when_it_holds_something(alices, drawer):
    unsorted = WingFactory(palace=drawer.palace, number=Wing.UNSORTED, name="A", slug="unsorted")
    assert wing_names(alices.get(MEMORY, LIST)) == ["Efoil rebuild"]
    DrawerFactory(room=RoomFactory(wing=unsorted))
    assert wing_names(alices.get(MEMORY, LIST)) == ["Efoil rebuild", "A"]


def test_a_wing_whose_drawers_are_all_in_the_trash_is_not_shown(alices, drawer):
    drawer.trash()
    assert wing_names(alices.get(MEMORY, LIST)) == []


def test_the_latest_activities_are_listed_newest_first(alices, palace):
    for number in range(8):
        Activity.objects.create(palace=palace, kind="wing_changed", summary=f"Summary {number}.")
    shown = re.findall(r"Summary \d", alices.get(MEMORY).text)
    assert shown == [f"Summary {number}" for number in range(7, 1, -1)]


def test_the_number_of_queries_does_not_grow_with_the_palace(
    alices, palace, drawer, django_assert_max_num_queries
):
    for _ in range(20):
        DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))
    alices.get(MEMORY)  # Places the rooms on the plan.
    with django_assert_max_num_queries(15):
        assert alices.get(MEMORY).status_code == 200


def test_a_palace_kept_for_somebody_else_is_not_shown_as_ones_own(alices, alice):
    for_others = Palace.objects.create(owner=alice, subject="a customer")
    drawer = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=for_others)))
    assert wing_names(alices.get(MEMORY, LIST)) == []
    assert alices.get(drawer.get_absolute_url()).status_code == 404


def test_an_empty_question_is_answered_with_what_to_do(alices, drawer):
    response = alices.get(MEMORY, {"q": "  ", **LIST})
    assert response.status_code == 400
    assert "The question is empty; write what you want to find." in response.text
    assert 'aria-invalid="true"' in response.text
    assert wing_names(response) == ["Efoil rebuild"]


@pytest.mark.parametrize("text", ["§ W-9042/R-9011/D-9007", "w-09042/r-9011/d-9007"])
def test_a_pointer_in_the_search_box_leads_to_its_drawer(alices, drawer, text):
    assert alices.get(MEMORY, {"q": text}).url == drawer.get_absolute_url()


def test_a_pointer_searched_through_htmx_leaves_the_page(alices, drawer):
    response = alices.get(MEMORY, {"q": str(drawer.pointer)}, headers={"HX-Request": "true"})
    assert response.headers["HX-Redirect"] == drawer.get_absolute_url()


def test_htmx_gets_only_the_body(alices, drawer):
    response = alices.get(MEMORY, headers={"HX-Request": "true"})
    assert response.text.lstrip().startswith('<div id="memory"')
    assert "<html" not in response.text
    assert "HX-Request" in response.headers["Vary"]


def test_what_is_zoomed_into_is_a_whole_page(alices, wing, room, drawer):
    headers = {"HX-Request": "true", "HX-Target": "main"}
    for place in (wing, room, drawer):
        response = alices.get(place.get_absolute_url(), headers=headers)
        assert "<h1" in response.text
        assert '<main id="main"' in response.text
    assert '<main id="main"' in alices.get(MEMORY, headers=headers).text


def test_nothing_private_is_kept_by_the_browser(alices, drawer):
    assert "no-store" in alices.get(MEMORY).headers["Cache-Control"]


def test_names_from_conversations_cannot_write_html(alices, palace):
    wing = WingFactory(palace=palace, name="<script>alert(1)</script>")
    DrawerFactory(room=RoomFactory(wing=wing, title="<b>bold</b>"))
    assert "<script>alert" not in alices.get(MEMORY).text
    assert "<b>" not in alices.get(wing.get_absolute_url()).text


def test_a_room_held_over_midnight_shows_both_days(alices, wing):
    room = RoomFactory(
        wing=wing,
        started_at=datetime(2025, 2, 28, 23, tzinfo=UTC),
        ended_at=datetime(2025, 3, 1, 1, tzinfo=UTC),
    )
    DrawerFactory(room=room)
    assert "28 Feb – 1 Mar 2025" in alices.get(wing.get_absolute_url()).text

from __future__ import annotations

import html
import re
import uuid
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from palace.models import Entity, Mention, RecollectionTrace
from palace.views.shared.palace_tags import excerpt
from tests.factories import DrawerFactory, RoomFactory, WingFactory


def shown_text(response):
    """What a browser holds: references are read, raw carriage returns become line feeds."""
    inner = re.search(r'id="text">(.*?)</div>', response.text, re.DOTALL)[1]
    without_marks = re.sub(r"</?mark[^>]*>", "", inner)
    return html.unescape(without_marks.replace("\r\n", "\n").replace("\r", "\n"))


@pytest.mark.parametrize(
    "text",
    [
        "\nA line feed first, and one last.\n",
        "Windows\r\nand old\rlines\r",
        "\tTabs\t and  spaces   at the end   ",
        "<b>not bold</b> & <script>alert(1)</script> &amp; &#13; </div>",
        "zero\u200bwidth, joined\u200dup, marked\ufeff, turned\u202e, and 👩‍👩‍👧 🏛️",
        "{{ not.a.template }} {% nor this %}",
    ],
)
def test_the_words_are_shown_to_the_character(alices, drawer, text):
    exact = DrawerFactory(room=drawer.room, text=text)
    assert shown_text(alices.get(exact.get_absolute_url())) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("So:\n```python\nprint(1)\n```\nIt prints.", "So: print(1) It prints."),
        ("  ~~~ a `b` c\nprint(1)", "print(1)"),
        ("Write ``` before it.", "Write ``` before it."),
        ("``` ends `here`", "``` ends `here`"),
        ("```", "(nothing visible)"),
    ],
)
def test_an_excerpt_has_no_fences_of_code(text, shown):
    assert excerpt(text) == shown


def test_a_passage_is_marked_without_changing_the_words(alices, drawer):
    response = alices.get(drawer.get_absolute_url(), {"passage": "4-8"})
    assert '<mark id="passage">wire</mark>' in response.text
    assert shown_text(response) == "The wire overheated."


@pytest.mark.parametrize(
    "passage", ["8-4", "0-0", "4", "-", "a-b", "90-95", "0-20", "²-³", "9" * 5000]
)
def test_a_passage_that_is_none_changes_nothing(alices, drawer, passage):
    response = alices.get(drawer.get_absolute_url(), {"passage": passage})
    assert shown_text(response) == "The wire overheated."


def test_the_drawer_says_where_when_and_who(alices, drawer):
    text = alices.get(drawer.get_absolute_url()).text
    for part in (
        "§ W-9042/R-9011/D-9007",
        "Efoil rebuild",
        "Evening by the lake",
        "Battery wiring",
        "You, <time",
        "1 January 2025, 00:00",
        "Said by",
        "Derek",
        "a plain file",
    ):
        assert part in text


def test_the_named_speaker_is_shown_rather_than_the_role(alices, drawer):
    said = DrawerFactory(room=drawer.room, speaker="Ann", role="user")
    assert "Ann, <time" in alices.get(said.get_absolute_url()).text


def conversation(room, texts):
    return [
        DrawerFactory(room=room, position=position, text=text)
        for position, text in enumerate(texts)
    ]


def neighbours(response):
    return {
        rel: re.search(rf'href="([^"]+)" rel="{rel}"', response.text) for rel in ("prev", "next")
    }


def test_the_messages_before_and_after_are_one_click_away(alices, room):
    first, second, third = conversation(room, ["One.", "Two.", "Three."])
    found = neighbours(alices.get(second.get_absolute_url()))
    assert found["prev"][1] == first.get_absolute_url()
    assert found["next"][1] == third.get_absolute_url()
    assert neighbours(alices.get(first.get_absolute_url()))["prev"] is None
    assert neighbours(alices.get(third.get_absolute_url()))["next"] is None


def test_neighbours_are_of_the_same_conversation_and_kept(alices, room):
    first, second, third = conversation(room, ["One.", "Two.", "Three."])
    conversation(RoomFactory(wing=room.wing), ["Another.", "Conversation.", "Here."])
    first.trash()
    found = neighbours(alices.get(second.get_absolute_url()))
    assert found["prev"] is None
    assert found["next"][1] == third.get_absolute_url()


def test_messages_at_the_same_position_are_all_reached(alices, room):
    first, second = (DrawerFactory(room=room, position=5) for _ in range(2))
    response = alices.get(first.get_absolute_url())
    assert neighbours(response)["next"][1] == second.get_absolute_url()


def test_entities_named_in_the_drawer_lead_to_their_pages(alices, drawer):
    derek = Entity.objects.create(palace=drawer.palace, kind="person", slug="d", name="Derek & Co")
    for start in (0, 9):
        Mention.objects.create(
            palace=drawer.palace, entity=derek, drawer=drawer, start=start, end=start + 5
        )
    text = alices.get(drawer.get_absolute_url()).text
    assert text.count(f'href="{reverse("entity_detail", args=[derek.uuid])}"') == 1


def trace(palace, query, drawer_uuid):
    return RecollectionTrace.objects.create(
        palace=palace,
        query=query,
        recipe="default",
        now=datetime(2025, 1, 1, tzinfo=UTC),
        hits=[{"drawer": str(uuid.uuid4())}, {"drawer": str(drawer_uuid), "score": 1.5}],
        candidates={"signals": [], "rows": []},
        duration_ms=1,
    )


def test_recalls_that_brought_it_up_are_named_once_each(alices, drawer):
    trace(drawer.palace, "What overheated?", drawer.uuid)
    trace(drawer.palace, "What overheated?", drawer.uuid)
    trace(drawer.palace, "Something else?", uuid.uuid4())
    text = alices.get(drawer.get_absolute_url()).text
    assert text.count(">What overheated?<") == 1
    assert "Something else?" not in text


def test_a_trashed_drawers_pointer_leads_nowhere(alices, drawer):
    drawer.trash()
    assert alices.get(reverse("pointer"), {"p": str(drawer.pointer)}).status_code == 404


def test_a_trashed_drawers_page_says_so_and_shows_the_ways_out(alices, drawer):
    drawer.trash()
    response = alices.get(drawer.get_absolute_url())
    assert "This drawer has been in the trash since" in response.text
    assert "30 days left" in response.text
    for way in ("restore_drawer", "purge_drawer"):
        assert f'action="{reverse(way, args=[drawer.uuid])}"' in response.text
    assert reverse("trash_place", args=["drawer", drawer.uuid]) not in response.text
    assert shown_text(response) == drawer.text


def test_a_question_that_was_purged_is_not_named(alices, drawer):
    trace(drawer.palace, "", drawer.uuid)
    assert "Recalled lately for" not in alices.get(drawer.get_absolute_url()).text


@pytest.mark.parametrize(
    "text", ["§ W-9042/R-9011/D-9007", "W-09042/R-9011/D-09007", "W-001/R-9011/D-9007"]
)
def test_a_pointer_leads_to_its_drawer_even_after_the_room_moved_wings(alices, drawer, text):
    WingFactory(palace=drawer.palace, number=1)
    assert alices.get(reverse("pointer"), {"p": text}).url == drawer.get_absolute_url()
    assert alices.get(reverse("pointer_path", args=[text])).url == drawer.get_absolute_url()


def test_what_is_no_pointer_is_answered_beside_the_search_field(alices, drawer):
    response = alices.get(reverse("pointer"), {"p": "W-42"})
    assert response.status_code == 400
    assert "is no pointer; write it like § W-042/R-11/D-007." in response.text


def test_htmx_gets_only_the_drawer(alices, drawer):
    response = alices.get(drawer.get_absolute_url(), headers={"HX-Request": "true"})
    assert "<html" not in response.text
    assert 'id="text"' in response.text


def test_the_number_of_queries_is_small(alices, drawer, django_assert_max_num_queries):
    conversation(drawer.room, ["Word."] * 10)
    with django_assert_max_num_queries(10):
        alices.get(drawer.get_absolute_url())

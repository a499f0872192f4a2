"""The rail on every page, and the box that goes anywhere."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from palace.models import RecollectionTrace
from tests.factories import DrawerFactory, EntityFactory, FactFactory
from tests.knowledge.dreaming.conftest import proposed


def links(text):
    return dict(re.findall(r'class="go-entry" href="([^"]+)".*?go-label">([^<]+)<', text))


@pytest.mark.parametrize(
    ("page", "current"),
    [
        ("memory", "/memory/"),
        ("facts", "/memory/facts/"),
        ("fact_changes", "/memory/facts/"),
        ("episodes", "/memory/"),
        ("trash", "/memory/trash/"),
        ("costs", "/settings/"),
        ("working_memory", "/settings/"),
        ("agents", "/chat/"),
    ],
)
def test_the_rail_says_where_one_is(alices, page, current):
    text = alices.get(reverse(page)).text
    rail = text[text.index('<header class="rail">') : text.index("</header>")]
    assert re.findall(r'href="([^"]+)" data-go="." aria-current="(?:page|true)"', rail) == [current]


def test_the_rail_counts_what_waits(alices, palace, fact):
    assert "waiting" not in alices.get(reverse("facts")).text
    proposed(palace, "drop", fact)
    assert '<span class="badge">1<span class="unseen"> waiting' in alices.get("/memory/facts/").text


def test_one_finds_what_one_can_do(alices, palace):
    assert links(alices.get(reverse("go")).text)["/chat/#text"] == "Start a new conversation"
    assert links(alices.get(reverse("go"), {"q": "tidy"}).text)["/memory/inbox/#dream"] == (
        "Tidy up now"
    )


def test_a_stranger_has_no_rail(client, db):
    assert 'class="rail"' not in client.get(reverse("sign_in")).text


def test_one_goes_to_pages_places_people_facts_and_messages(alices, palace, drawer):
    DrawerFactory(room=drawer.room, closet=None, text="The ferry to Korcula leaves at nine.")
    fact = FactFactory(
        subject=EntityFactory(palace=palace, name="Ferryman", slug="ferryman"),
        text="Ferryman sails to Korcula",
    )
    found = links(alices.get(reverse("go"), {"q": "ferry"}).text)
    assert found[fact.get_absolute_url()] == "Ferryman sails to Korcula"
    assert found[fact.subject.get_absolute_url()] == "Ferryman"
    assert found["/memory/?q=ferry"] == "Search all messages for “ferry”"
    assert not RecollectionTrace.objects.exists()


@pytest.mark.parametrize(
    ("words", "address"),
    [("export", "/settings/data/"), ("token", "/settings/keys/"), ("REVIEW", "/memory/inbox/")],
)
def test_pages_are_found_by_other_words_too(alices, palace, words, address):
    assert address in links(alices.get(reverse("go"), {"q": words}).text)


def test_a_pointer_leads_to_its_drawer(alices, drawer):
    found = links(alices.get(reverse("go"), {"q": str(drawer.pointer)}).text)
    assert found[drawer.get_absolute_url()] == str(drawer.pointer)


def test_without_words_come_recent_rooms_and_pages(alices, drawer):
    found = links(alices.get(reverse("go")).text)
    assert drawer.room.get_absolute_url() in found
    assert reverse("facts") in found


def test_the_dialog_gets_the_part_alone(alices, drawer):
    text = alices.get(reverse("go"), {"q": "x"}, headers={"HX-Request": "true"}).text
    assert "<html" not in text
    assert "go-entry" in text


def test_of_others_nothing_is_found(bobs, drawer):
    text = bobs.get(reverse("go"), {"q": drawer.room.title}).text
    assert drawer.room.get_absolute_url() not in text


@pytest.mark.parametrize("words", ["%", "\x00", "a" * 5000, "§ W-1", "🙂", "  "])
def test_odd_words_are_answered(alices, drawer, words):
    assert alices.get(reverse("go"), {"q": words}).status_code == 200

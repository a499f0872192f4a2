from __future__ import annotations

import pytest
from django.urls import reverse

from palace.curation.trash import move_to_trash
from palace.knowledge.episodes.episode_store import store_episode
from palace.mining.pipeline import mine
from palace.models import Palace, Room
from tests.conversations import BATTERY, EVERYTHING, SOURDOUGH
from tests.furnished_palaces import furnish_with
from tests.model_server import EMBEDDINGS, Status


@pytest.fixture
def page(client, alice, palace):
    furnish_with(palace, *EVERYTHING)
    client.force_login(alice)
    return lambda **query: client.get(reverse("episodes"), query)


def test_the_latest_come_first_and_lead_to_their_rooms(page):
    text = page().text
    titles = ["Trip to Lisbon", "Flat sourdough", "Battery wiring"]
    places = [text.index(f">{title}</a>") for title in titles]
    assert places == sorted(places)
    assert Room.objects.get(external_id="lisbon").get_absolute_url() in text
    assert "Quoted from 2 messages." in text


def test_a_question_shows_the_closest_first(page):
    text = page(q="Why is my bread flat?").text
    assert text.index("Flat sourdough</a>") < text.index("Battery wiring</a>")


def test_without_the_embedder_the_page_says_so(page, settings, model_server):
    from palace.models import EmbeddingSpace  # noqa: PLC0415

    settings.LLM_MAX_RETRIES = 0
    EmbeddingSpace.objects.update(provider=model_server.base_url)
    model_server.script([Status(500)] * 5, path=EMBEDDINGS)
    response = page(q="bread")
    assert response.status_code == 503
    assert "Nothing could be searched." in response.text


def test_what_was_stored_is_distinguished_from_what_was_derived(page, palace):
    store_episode(
        palace,
        conversation="elsewhere",
        summary="<b>Wells</b> were mapped.",
        entities=[{"name": "Smith #1"}],
        agent="geo",
    )
    text = page().text
    assert "&lt;b&gt;Wells" in text
    assert "Stored by geo." in text
    assert "Smith #1" in text
    assert "A conversation that is not kept here" in text


def test_the_room_shows_its_episode(page, client, palace):
    store_episode(
        palace, conversation="battery", summary="Use thicker wire.", key_decisions=["8-AWG"]
    )
    text = client.get(Room.objects.get(external_id="battery").get_absolute_url()).text
    assert "In short" in text
    assert "Use thicker wire." in text
    assert "8-AWG" in text
    sourdough = client.get(Room.objects.get(external_id="sourdough").get_absolute_url()).text
    assert "thicker" not in sourdough


def test_what_is_in_the_trash_is_not_shown(page):
    move_to_trash(Room.objects.get(external_id="sourdough"))
    text = page().text
    assert SOURDOUGH.turns[0].text[:30] not in text
    assert BATTERY.turns[0].text[:30] in text


def test_a_stranger_sees_only_their_own(page, client, bob):
    mine(Palace.objects.own(bob), BATTERY)
    client.force_login(bob)
    text = page(q="sourdough bread in Lisbon").text
    assert "Battery wiring" in text
    assert "Flat sourdough" not in text


def test_an_empty_palace_says_where_they_come_from(client, alice):
    client.force_login(alice)
    assert "There are no summaries yet." in client.get(reverse("episodes")).text

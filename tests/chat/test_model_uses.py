"""What a model is asked has switches, and a page asks first."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.urls import reverse

from chat.views.model_uses import A_CALL, held_by, rows_of
from language.transcripts import Transcript
from llm import chat
from llm.models import Usage
from palace.knowledge.episodes import write_due_episodes
from palace.mining.pipeline import mine
from palace.models import Drawer, Palace
from settings_app.models import ModelUse, settings_of
from tests.chat.conftest import finished, start
from tests.chat.lives import QUESTION, SAID_AT, live_through
from tests.conversations import BATTERY
from tests.factories import DrawerFactory, RoomFactory
from tests.model_server import CHAT

OF_SCHEMA = {
    "FilingAnswer": "filing",
    "WindowAnswer": "filing",
    "EpisodeAnswer": "filing",
    "FactsAnswer": "facts",
    "JudgementsAnswer": "facts",
    "Order": "rerank",
    "ConsolidationAnswer": "dreams",
    "PreferencesAnswer": "dreams",
}


def schema_of(request):
    return request.body.get("response_format", {}).get("json_schema", {}).get("name", "")


def uses_of(server):
    return {OF_SCHEMA.get(schema_of(each), "replies") for each in server.requests_to(CHAT)}


# Switches.


@pytest.mark.some(2)
@pytest.mark.parametrize("use", ModelUse.values)
def test_a_use_that_is_off_sends_nothing(palace, choices, model_server, use):
    others = [each for each in ModelUse.values if each != use]
    choices(provider=model_server.base_url, model="test-model", uses=others)
    live_through(palace)
    assert uses_of(model_server) == set(others)


def test_with_facts_off_filing_asks_for_none(palace, choices, model_server):
    choices(provider=model_server.base_url, model="test-model", uses=["filing"])
    mine(palace, BATTERY)
    asked = model_server.requests_to(CHAT)
    assert "FilingAnswer" in {schema_of(each) for each in asked}
    assert not any("predicate" in each.body["messages"][0]["content"] for each in asked)


def test_who_has_not_agreed_is_sent_nothing(palace, choices, model_server):
    choices(provider=model_server.base_url, model="test-model", awaits_consent=True)
    live_through(palace)
    assert model_server.requests == []
    assert not Usage.objects.filter(requests__gt=0).exists()


def test_switches_hold_for_this_servers_model_too(palace, choices, model_server, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "operators-model"
    choices(uses=["facts"])
    live_through(palace)
    assert uses_of(model_server) == {"facts"}


def test_with_all_of_them_off_replies_quote(palace, choices, model_server):
    choices(provider=model_server.base_url, model="test-model", uses=[])
    mine(palace, BATTERY)
    reply = finished(start(palace, QUESTION))
    assert reply.status == "done"
    assert not reply.model
    assert model_server.requests == []


# The page that asks first.


def test_another_provider_is_asked_about_before_it_is_sent_anything(
    alices, alice, palace, model_server
):
    form = {"provider": "address", "base_url": model_server.base_url, "model": "big-model"}
    response = alices.post(reverse("model_settings"), form)
    assert response.url == reverse("model_uses")
    assert settings_of(alice.pk).awaits_consent
    mine(palace, BATTERY)
    page = alices.get(response.url).text
    assert model_server.requests == []
    host = model_server.base_url.split("/")[2]
    assert f'<b class="host">{host}</b>' in page
    assert "Connect this model?" in page
    assert "at an unknown price" in page
    assert page.count('role="switch"') == len(ModelUse)
    agreed = {"uses": ["replies"], "price_input": "", "price_output": "", "do": "agree"}
    assert alices.post(response.url, agreed).url == response.url
    chosen = settings_of(alice.pk)
    assert (chosen.uses, chosen.awaits_consent) == (["replies"], False)
    finished(start(palace, QUESTION))
    assert uses_of(model_server) == {"replies"}


def test_who_stays_at_an_address_is_not_asked_again(alices, alice, choices):
    choices(provider="https://models.example.org/v1", model="one")
    form = {"provider": "address", "base_url": "https://models.example.org/v1", "model": "two"}
    assert alices.post(reverse("model_settings"), form).url == reverse("model_settings")
    assert not settings_of(alice.pk).awaits_consent
    elsewhere = form | {"base_url": "https://elsewhere.example.org/v1"}
    assert alices.post(reverse("model_settings"), elsewhere).url == reverse("model_uses")
    assert settings_of(alice.pk).awaits_consent
    alices.post(reverse("model_settings"), {"provider": "none"})
    assert not settings_of(alice.pk).awaits_consent


def test_this_servers_model_has_the_same_page(alices, alice, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL = "https://llm.example.org/v1", "operators-model"
    page = alices.get(reverse("model_uses")).text
    assert '<b class="host">llm.example.org</b>' in page
    assert "the operator of this server" in page
    alices.post(reverse("model_uses"), {"uses": ["replies", "rerank"], "do": "agree"})
    assert settings_of(alice.pk).uses == ["replies", "rerank"]


def test_a_named_price_is_used_for_estimates_and_costs(alices, alice, choices, model_server):
    choices(provider=model_server.base_url, model="test-model")
    prices = {"uses": ModelUse.values, "price_input": "1000", "price_output": "3000"}
    page = alices.post(reverse("model_uses"), prices | {"do": "estimate"}).text
    assert "unknown price" not in page
    assert settings_of(alice.pk).price_input is None  # Estimated, not saved.
    alices.post(reverse("model_uses"), prices | {"do": "agree"})
    endpoint = settings_of(alice.pk).endpoint()
    chat.complete([{"role": "user", "content": "Hi"}], endpoint=endpoint, purpose="chat")
    assert Usage.objects.latest("pk").cost_usd == Decimal("0.032")  # 11 read and 7 written.
    # Another model has another price.
    form = {"provider": "address", "base_url": model_server.base_url, "model": "another"}
    alices.post(reverse("model_settings"), form)
    assert settings_of(alice.pk).price_input is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"uses": ["gossip"]}, "There is no such use."),
        ({"price_input": "-1", "price_output": "1"}, "Write an amount in dollars"),
        ({"price_input": "1e99", "price_output": "1"}, "Write an amount in dollars"),
        ({"price_input": "x", "price_output": "1"}, "Write an amount in dollars"),
        ({"price_input": "1"}, "Write both prices, or none."),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_agreed_to(alices, alice, choices, wrong, sentence):
    choices(provider="https://models.example.org/v1", model="m", awaits_consent=True)
    response = alices.post(reverse("model_uses"), {"uses": ["facts"], "do": "agree", **wrong})
    assert response.status_code == 400
    assert sentence in response.text
    assert settings_of(alice.pk).awaits_consent


def test_the_estimate_is_near_what_is_sent(alice, palace, choices, model_server):
    """Within a factor of three, without the second try that this model's answers need."""
    turns = tuple(turn for turn in BATTERY.turns)
    choices(provider=model_server.base_url, model="test-model", uses=[])
    mine(palace, Transcript("plain", "again", "", turns))
    held = held_by(alice.pk)
    assert held.messages == len(turns) <= A_CALL
    chosen = choices(uses=["filing", "facts"])
    rows = {row.use: row for row in rows_of(chosen, chosen.endpoint(), held, chosen.uses)}
    estimated = rows[ModelUse.FILING].every.tokens + rows[ModelUse.FACTS].every.tokens
    Drawer.objects.all().delete()
    model_server.answer(lambda request: "{}")
    live_palace = palace
    mine(live_palace, Transcript("plain", "once more", "", turns))
    write_due_episodes(live_palace)
    characters = sum(len(each.prompt) for each in model_server.requests_to(CHAT))
    assert estimated / 3 < characters / 4 < estimated * 3


def test_bytes_are_counted_to_the_message_in_rooms_read_whole_in_part_or_not_at_all(
    alice, bob, palace
):
    texts = ("Zoë’s café", "read already", "in the trash", "the rest waits", "alone in its room")
    whole = RoomFactory(wing__palace=palace)
    drawers = [DrawerFactory(room=whole, text=text, facts_read_at=None) for text in texts[:4]]
    DrawerFactory(room__wing__palace=palace, text=texts[4], facts_read_at=None)
    DrawerFactory(room__wing__palace=Palace.objects.own(bob), facts_read_at=None)

    def unread():
        held = held_by(alice.pk)
        return held.unread, held.unread_bytes

    assert unread() == (5, sum(len(text.encode()) for text in texts))
    drawers[2].trash()
    Drawer.objects.filter(pk=drawers[1].pk).update(facts_read_at=SAID_AT)
    left = [texts[n] for n in (0, 3, 4)]
    assert unread() == (3, sum(len(text.encode()) for text in left))
    Drawer.objects.within(palace).update(facts_read_at=SAID_AT)
    assert unread() == (0, 0)

"""What a model is asked has switches, a page asks first, and another lists what was sent."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.models import Agent
from chat.views.model_uses import A_CALL, held_by, rows_of
from language.transcripts import Transcript, Turn
from llm import chat, providers, usage
from llm.embedding import EmbeddingModel, embed
from llm.errors import ModelUnavailable
from llm.models import Usage
from palace.curation.purge import Purge
from palace.knowledge.dreaming import dream
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.models import Drawer, Fact, Palace
from palace.pipeline import mine
from palace.recall import RecallRequest, recall
from settings_app.models import ModelUse, settings_of
from settings_app.tasks import forget_old_sent
from tests.chat.conftest import finished, start
from tests.conversations import BATTERY
from tests.factories import DrawerFactory, RoomFactory
from tests.model_server import CHAT, Status

QUESTION = "Who overheated the wire?"
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


SAID_AT = datetime(2025, 4, 2, 18, tzinfo=UTC)
NORA = Transcript(
    "plain",
    "nora",
    "Nora in Lisbon",
    (
        Turn("1", "user", "My sister Nora lives in Lisbon. I am allergic to peanuts.", SAID_AT),
        Turn("2", "assistant", "I will keep the peanuts in mind.", SAID_AT),
    ),
)


def schema_of(request):
    return request.body.get("response_format", {}).get("json_schema", {}).get("name", "")


def uses_of(server):
    return {OF_SCHEMA.get(schema_of(each), "replies") for each in server.requests_to(CHAT)}


def live_through(palace):
    """All that a model can be asked for, once."""
    mine(palace, BATTERY)
    mine(palace, NORA)
    learn_unread(palace)
    write_due_episodes(palace)
    recall(palace, RecallRequest(QUESTION, rerank=True))
    dream(palace, with_model=True)
    finished(start(palace, QUESTION))


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


def sent_page(client, **query):
    return client.get(reverse("sent"), query).text


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


# What was sent.


def sizes(server):
    return [sum(len(m["content"]) for m in each.body["messages"]) for each in server.requests]


def test_sent_lists_exactly_the_requests_that_the_server_received(
    alices, palace, choices, model_server, settings
):
    settings.LLM_MAX_RETRIES = 1
    choices(provider=model_server.base_url, model="test-model")
    model_server.script([Status(500), "{}", Status(400), Status(500), Status(500)])
    live_through(palace)
    rows = list(Usage.objects.filter(requests__gt=0).order_by("pk"))
    listed = [row.characters for row in rows for _ in range(row.requests)]
    assert listed == sizes(model_server)
    assert {row.host for row in rows} == {model_server.base_url.split("/")[2]}
    assert {row.requests for row in rows} == {1, 2}
    assert any(row.outcome != usage.OK for row in rows)
    page = sent_page(alices)
    assert page.count('class="sent-row"') == len(rows)
    assert "sent 2 times" in page
    assert "no usable answer" in page


def test_what_a_call_was_made_of_is_there_as_references(alices, palace, model):
    live_through(palace)
    drawers = Drawer.objects.within(palace)
    keys = {f"drawer:{key}" for key in drawers.values_list("pk", flat=True)}
    of = defaultdict(set)
    for call in Usage.objects.filter(requests__gt=0):
        for reference in call.references:
            if reference.startswith("instructions:"):
                of[reference.partition(":")[2]] |= {*call.references}
    assert keys <= of["filing-and-facts"]
    assert keys <= of["summary"]
    assert keys & of["rerank"]
    assert keys & of["chat"]
    assert any(each.startswith("conversation:") for each in of["chat"])
    facts = {f"fact:{key}" for key in Fact.objects.values_list("pk", flat=True)}
    assert {each for each in of["consolidation"] if each.startswith("fact:")} == facts != set()
    assert keys & of["preferences"]
    page = sent_page(alices)
    assert str(drawers.first().pointer) in page
    assert drawers.first().get_absolute_url() in page
    assert "Loci’s instructions for ordering" in page


def test_no_word_is_kept_of_what_was_sent(palace, model):
    live_through(palace)
    for call in Usage.objects.filter(requests__gt=0):
        assert all(re.fullmatch(r"[a-z]+:[\w-]+", each) for each in call.references)


def test_what_is_forgotten_is_forgotten_here_too(alices, palace, model):
    mine(palace, BATTERY)
    pointer = str(Drawer.objects.within(palace).first().pointer)
    assert pointer in sent_page(alices)
    Drawer.objects.within(palace).update(trashed_at=timezone.now())
    assert pointer not in sent_page(alices)
    assert "no longer here" in sent_page(alices)
    Purge(palace).run(Drawer.objects.all())
    assert pointer not in sent_page(alices)
    assert "no longer here" in sent_page(alices)


def test_an_agent_of_the_chat_is_named(alices, palace, model):
    agent = Agent.objects.create(palace=palace, name="Coach", instructions="Be brief.")
    finished(start(palace, QUESTION, agent=agent))
    assert ">Coach</a>" in sent_page(alices)
    assert "Be brief" not in sent_page(alices)


def test_what_reached_nobody_is_not_listed(alices, alice):
    nobody = providers.endpoint("http://127.0.0.1:9/v1", "m")
    with pytest.raises(ModelUnavailable):
        chat.complete(
            [{"role": "user", "content": "Hi"}],
            endpoint=nobody,
            purpose="chat",
            owner_id=alice.pk,
        )
    assert Usage.objects.get().requests == 0
    assert 'class="sent-row"' not in sent_page(alices)


def test_embeddings_by_another_machine_are_listed(alices, alice, model_server):
    model = EmbeddingModel(model_server.base_url, "an-embedder", model_server.dimensions)
    embed(["one", "three"], model, owner_id=alice.pk, is_question=True)
    call = Usage.objects.get()
    assert (call.requests, call.characters) == (1, len("one") + len("three"))
    assert "8 characters" in sent_page(alices)


def test_a_stranger_sees_nothing_of_it(alices, alice, bob, palace, model):
    mine(palace, BATTERY)
    bobs = Client()
    bobs.force_login(bob)
    assert 'class="sent-row"' not in sent_page(bobs)
    assert "Nothing yet." in sent_page(bobs)
    newest = Usage.objects.filter(requests__gt=0).latest("pk").pk
    assert 'class="sent-row"' not in sent_page(bobs, before=newest + 1)
    # An id of somebody else's message leads nowhere.
    theirs = Drawer.objects.within(palace).first()
    call = usage.record(purpose="chat", provider="x", model="m", duration_ms=1, owner_id=bob.pk)
    Usage.objects.filter(pk=call.pk).update(
        requests=1, host="x", references=[f"drawer:{theirs.pk}", f"drawer:{theirs.uuid}"]
    )
    page = sent_page(bobs)
    assert str(theirs.pointer) not in page
    assert str(theirs.uuid) not in page
    assert "2 no longer here" in page


@pytest.fixture
def many_calls(alice, palace):
    """Thirty calls, each made of drawers of its own."""
    for _ in range(30):
        drawer = DrawerFactory(room__wing__palace=palace)
        call = usage.record(
            purpose="memory_extract", provider="x", model="m", duration_ms=1, owner_id=alice.pk
        )
        Usage.objects.filter(pk=call.pk).update(
            requests=1, host="x.example.org", references=[f"drawer:{drawer.pk}"]
        )


def test_the_page_is_paged_by_keys_and_needs_few_queries(alices, many_calls):
    with CaptureQueriesContext(connection) as asked:
        first = sent_page(alices)
    # Session, user, settings, the rail's count, the calls, and their drawers.
    assert len(asked) <= 8
    assert first.count('class="sent-row"') == 25
    older = re.search(r'href="\?before=(\d+)"', first)[1]
    part = alices.get(reverse("sent"), {"before": older}, headers={"HX-Request": "true"}).text
    assert part.count('class="sent-row"') == 5
    assert "<html" not in part
    whole = sent_page(alices, before=older)
    assert whole.count('class="sent-row"') == 5
    assert "<html" in whole


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "1e3", ""])
def test_a_place_that_is_none_is_the_beginning(alices, many_calls, before):
    assert sent_page(alices, before=before).count('class="sent-row"') == 25


def test_after_a_year_only_the_cost_is_left(alices, many_calls):
    Usage.objects.update(created_at=timezone.now() - timedelta(days=364))
    forget_old_sent()
    assert Usage.objects.filter(requests=1).count() == 30
    Usage.objects.update(created_at=timezone.now() - timedelta(days=366), cost_usd=1)
    forget_old_sent()
    assert not Usage.objects.exclude(host="", requests=0, references=[], cost_usd=1).exists()
    assert "Nothing yet." in sent_page(alices)

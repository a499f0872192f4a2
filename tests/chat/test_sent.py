"""A page lists what was sent to models, by reference; no word of it is kept."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.models import Agent
from chat.views import sent
from chat.views.sent import LINKS
from config.tasks import forget_old_sent
from llm import chat, providers, usage
from llm.embedding import EmbeddingModel, embed
from llm.errors import ModelUnavailable
from llm.models import Usage
from palace.curation.purge import Purge
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact
from tests.chat.conftest import finished, start
from tests.chat.lives import QUESTION, live_through
from tests.conversations import BATTERY
from tests.factories import DrawerFactory, RoomFactory
from tests.model_server import Status


def sent_page(client, **query):
    return client.get(reverse("sent"), query).text


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
    room = RoomFactory(wing__palace=palace)
    for drawer in DrawerFactory.create_batch(30, room=room):
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


def test_all_that_a_call_was_made_of_is_reached(alices, bob, many_calls):
    drawers = list(Drawer.objects.order_by("pk"))
    call = Usage.objects.latest("pk")
    Usage.objects.exclude(pk=call.pk).delete()
    call.references = [f"drawer:{drawer.pk}" for drawer in drawers] * 2
    call.save()
    row = sent_page(alices)
    assert row.count(drawers[LINKS - 1].get_absolute_url()) == 1
    assert drawers[LINKS].get_absolute_url() not in row
    address = f"{reverse('sent')}?call={call.pk}"
    assert f'<a href="?call={call.pk}">All 30 messages</a>' in row
    page = alices.get(address).text
    assert all(drawer.get_absolute_url() in page for drawer in drawers)
    bobs = Client()
    bobs.force_login(bob)
    assert bobs.get(address).status_code == 404


def test_a_call_of_very_many_parts_is_paged(alices, many_calls, monkeypatch):
    monkeypatch.setattr(sent, "LINKS_OF_CALL", 20)
    drawers = list(Drawer.objects.order_by("pk"))
    call = Usage.objects.latest("pk")
    Usage.objects.exclude(pk=call.pk).delete()
    call.references = [f"drawer:{drawer.pk}" for drawer in drawers]
    call.save()
    first = sent_page(alices, call=call.pk)
    assert drawers[19].get_absolute_url() in first
    assert drawers[20].get_absolute_url() not in first
    more = {"call": call.pk, "page": 2}
    part = alices.get(reverse("sent"), more, headers={"HX-Request": "true"}).text
    assert drawers[20].get_absolute_url() in part
    assert "<html" not in part
    assert "Back to the beginning" in sent_page(alices, **more)


@pytest.mark.parametrize("call", ["", "x", "-1", "9" * 30, "²"])
def test_a_call_that_is_none_is_not_found(alices, many_calls, call):
    assert alices.get(reverse("sent"), {"call": call}).status_code == 404


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

"""Dreaming now: what it would cost, the button, how far it is, and what is on record of it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings as project
from django.urls import reverse
from django.utils import timezone

from llm.models import Usage
from palace.knowledge.dreaming.dream_run import dream
from palace.models import Activity, DreamMark
from palace.models.concurrency import held_if_free
from palace.transfer.spools import spool_folder
from settings_app.models import MemorySettings
from tests.factories import FactFactory
from tests.knowledge.dreaming.conftest import answers, hold, model
from tests.transfer.processes import environment
from tests.views.test_imports import WITHOUT_REDIS
from tests.views.test_inbox import text_of

__all__ = ["hold", "model"]

DREAM = "/memory/inbox/dream/"
HTMX = {"HX-Request": "true"}


def begin(client, kind="rules", *, part=False):
    return client.post(DREAM, {"with": kind}, headers=HTMX if part else {})


def poll_of(response):
    return html.unescape(re.search(r'hx-get="([^"]+)" hx-trigger="every 1s"', response.text)[1])


def test_without_a_model_it_is_free(alices, fact):
    text = text_of(alices.get(DREAM))
    assert "It looks at 1 fact without a model. That is free" in text
    assert 'name="with" value="rules"' in text
    assert 'value="model"' not in text


def test_with_a_model_it_says_before_what_it_may_cost(alices, alice, fact, model, settings):
    settings.LLM_MODEL = "gpt-4o-mini"
    text = text_of(alices.get(DREAM))
    assert "<dt>Looks at</dt> <dd>1 fact" in text
    for name in ("Likely", "At most"):
        assert re.search(rf"<dt>{name}</dt> <dd>[^<]+, [\d,]+ tokens", text)
    assert "<dt>Limit</dt> <dd>$0.25, 150,000 tokens</dd>" in text
    assert "Dream with gpt-4o-mini" in text
    assert "beyond the limit" not in text
    assert not Usage.objects.exists()
    MemorySettings.objects.create(owner=alice, dream_limit_tokens=10, dreams="model")
    tight = text_of(alices.get(DREAM))
    assert "it would go beyond the limit: then less is looked at" in tight
    assert "At night it dreams with the model." in tight


@pytest.mark.parametrize(("asked", "with_model"), [("rules", False), ("model", True), ("", False)])
def test_the_button_queues_a_dream_and_its_turn_is_waited_for(
    alices, palace, fact, queued, asked, with_model
):
    response = begin(alices, asked)
    assert response.url == f"{DREAM}?since=never"
    assert queued() == ["dream_of"]
    page = alices.get(response.url)
    assert "It waits for a free worker" in page.text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page.text
    assert alices.get(poll_of(page), headers=HTMX).status_code == 204
    dream(palace, with_model=with_model)
    over = alices.get(poll_of(page), headers=HTMX)
    assert "Dreamt over 1 fact: nothing to change." in over.text
    assert "every 1s" not in over.text
    assert "<html" not in over.text


def test_in_place_it_shows_how_far_it_is_and_leads_to_what_came(alices, palace, hold, queued):
    hold("User enjoys hiking", "likes", "hiking")
    hold("User likes hiking", "likes", "hiking")
    waiting = begin(alices, part=True)
    assert "About to dream" in waiting.text
    address = poll_of(waiting)
    with held_if_free(f"dream over palace {palace.pk}"):
        dreaming = alices.get(address, headers=HTMX)
        assert 'data-said="Your palace is dreaming."' in dreaming.text
        assert "Dreaming …" in dreaming.text
        assert alices.get(poll_of(dreaming), headers=HTMX).status_code == 204
        # Asked for once more, it is not queued again, and does not wait for ever.
        again = begin(alices, part=True)
        assert queued() == ["dream_of"]
    DreamMark.objects.create(palace=palace, dreamt_at=timezone.now() - timedelta(days=1))
    assert "every 1s" not in alices.get(poll_of(again), headers=HTMX).text
    made = dream(palace).activity
    over = alices.get(address, headers=HTMX)
    assert "1 change proposed" in over.text
    assert f"/memory/inbox/?dream={made.uuid}" in over.text


def test_a_file_of_instructions_that_cannot_be_read_is_reported_first(
    alices, fact, model, settings, tmp_path, queued
):
    settings.DREAM_DIRECTIVE = str(tmp_path / "none.txt")
    for part in (False, True):
        response = begin(alices, "model", part=part)
        assert response.status_code == 400
        assert "none.txt" in response.text
    assert queued() == []


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_a_queue_that_is_away_is_reported(alices, fact):
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_REDIS, DREAM],
        env=environment() | {"REDIS_URL": f"unix://{spool_folder()}/no-such-socket"},
        cwd=project.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("400 ")
    assert "The queue (Redis) does not answer at the moment, so nothing was begun." in said


def test_another_palaces_dream_is_not_shown(bobs, palace, fact):
    dream(palace)
    text = bobs.get(DREAM).text
    assert "Dreamt over" not in text
    assert "There are no facts yet that it could look at" in text


def test_the_record_says_what_was_looked_at_proposed_and_spent(alices, palace, hold, model):
    answers(model)
    hold("User enjoys hiking", "likes", "hiking")
    hold("User likes hiking", "likes", "hiking")
    made = dream(palace).activity
    text = text_of(alices.get(reverse("activities"), {"kind": "dreamt"}))
    assert "Dreamt over 2 facts" in text
    assert "<dt>facts looked at</dt> <dd>2</dd>" in text
    assert "<dt>proposed: Merge duplicates</dt> <dd>1</dd>" in text
    assert re.search(r"<dt>calls</dt> <dd>\d+ of [^<]*small-model", text)
    assert re.search(r"<dt>tokens</dt> <dd>[\d,]+</dd>", text)
    assert "<dt>cost</dt>" in text
    assert f"/memory/inbox/?dream={made.uuid}" in text


def test_a_dream_by_rules_is_on_record_as_free(alices, palace, user):
    FactFactory(subject=user, text="User likes tea")
    dream(palace)
    text = text_of(alices.get(reverse("activities")))
    assert "<dt>without a model</dt> <dd>free</dd>" in text
    assert "?dream=" not in text
    assert Activity.objects.filter(palace=palace).count() == 1


def test_a_dream_that_suggests_a_project_leads_to_the_conversations(alices, palace):
    detail = {"looked_at": {"facts": 1}, "proposed": {}, "rooms": 2}
    Activity.objects.create(
        palace=palace, kind=Activity.Kind.DREAMT, summary="Dreamt.", detail=detail
    )
    for address in (DREAM, reverse("activities")):
        page = alices.get(address).text
        assert re.search(r'href="/memory/inbox/\?show=rooms"[^>]*>See the conversations', page)
    assert re.search(r"projects suggested\W.*2", text_of(alices.get(reverse("activities"))))

"""The test button: what is asked, and what is said of the answer."""

from __future__ import annotations

import logging
import re
import time

import pytest
from django.urls import reverse

from llm.models import Usage
from settings_app.models import MemorySettings, settings_of
from tests.model_server import CHAT, CutOff, NotJson, Slow, Status
from tests.settings_app.form import (
    KEY,
    OPENAI,
    OTHER_KEY,
    UNCHANGED,
    keep,
    own,
)

pytestmark = pytest.mark.django_db


def test_a_model_that_works_is_said_to(press_test, model_server, alice):
    sentence = press_test(own(model_server), api_key=KEY)
    assert re.fullmatch(
        rf"{model_server.base_url} \(gpt-4o-mini\) works: it answered in \d\.\d s\.", sentence
    )
    (request,) = model_server.requests_to(CHAT)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert len(request.prompt) < 100
    usage = Usage.objects.get()
    assert (usage.owner, usage.purpose, usage.outcome) == (alice, "chat", "ok")
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Status(401, f"Incorrect API key: {KEY}", "invalid_api_key"), "refused the API key"),
        (Status(403), "does not allow this API key to use the model"),
        (Status(404, "No such model.", "model_not_found"), "check the model's name"),
        (Status(429, retry_after_s=60), "is busy or the account is over its limit"),
        (Status(500, retry_after_s=60), "failed with status 500"),
        (NotJson(), "is not in OpenAI's protocol"),
        (NotJson("{half", "application/json"), "is not in OpenAI's protocol"),
        (CutOff(), "could not be reached; check that it runs"),
        ("", "returned an empty answer"),
    ],
)
def test_one_that_does_not_gets_a_message(press_test, model_server, caplog, reply, sentence):
    caplog.set_level(logging.DEBUG)
    model_server.answer(reply)
    started = time.monotonic()
    assert sentence in press_test(own(model_server), api_key=KEY)
    assert time.monotonic() - started < 5, "It asks once, and does not wait to ask again."
    assert len(model_server.requests_to(CHAT)) == 1
    assert Usage.objects.get().outcome != "ok"
    assert KEY not in caplog.text


def test_silence_has_an_end(press_test, model_server, settings):
    settings.LLM_TIMEOUT_S = 0.3
    model_server.answer(Slow(20))
    assert "did not answer within 0.3 s." in press_test(own(model_server))


def test_where_nobody_listens_is_said(press_test, model_server):
    closed = "http://127.0.0.1:9/v1"
    assert "check that it runs" in press_test(own(model_server, base_url=closed))


@pytest.mark.parametrize("host", ["％31.example", "[v1.x]", "a..b.invalid", "a" * 300])
def test_a_name_that_cannot_be_looked_up_is_no_fault(press_test, settings, host):
    settings.PRIVATE_PROVIDERS = False
    sentence = press_test(OPENAI, provider="address", base_url=f"https://{host}/v1", api_key=KEY)
    assert "is not a valid URL" in sentence or "check that it runs" in sentence


def test_a_model_within_is_not_asked_on_a_server(press_test, model_server, settings):
    settings.PRIVATE_PROVIDERS = False
    assert "in this server's own network" in press_test(own(model_server))
    assert model_server.requests == []
    assert not Usage.objects.exists()


def test_the_saved_key_is_used_where_it_belongs(alice, press_test, model_server):
    keep(alice, provider=model_server.base_url)
    assert "works" in press_test(own(model_server))
    assert model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_typed_key_is_tried_instead_of_the_saved_one(alice, press_test, model_server):
    keep(alice, provider=model_server.base_url)
    press_test(own(model_server), api_key=OTHER_KEY)
    assert model_server.requests[0].headers["authorization"] == f"Bearer {OTHER_KEY}"
    assert settings_of(alice.pk).endpoint().api_key == KEY


def test_the_saved_key_is_not_sent_to_another_address(alice, press_test, model_server):
    keep(alice, provider="openai")
    press_test(own(model_server))
    keep_elsewhere = model_server.requests[0].headers
    assert KEY not in str(keep_elsewhere)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (OPENAI, "OpenAI needs an API key."),
        (OPENAI | {"model": "", "api_key": KEY}, "Name the model"),
        (OPENAI | {"provider": "address"}, "Write the address of the model."),
        (OPENAI | {"provider": "nobody"}, "There is no such provider."),
        (UNCHANGED | {"provider": "none"}, "There is no model to try"),
        (UNCHANGED, "There is no model to try"),
        ({}, "required"),
    ],
)
def test_what_cannot_be_tried_is_said(press_test, form, sentence):
    assert sentence in press_test(form)
    assert not Usage.objects.exists()


def test_the_rest_of_the_form_does_not_matter_for_the_test(press_test, model_server):
    assert "works" in press_test(own(model_server, top_k="many", embedding_model="x"))


def test_this_servers_model_can_be_tried(press_test, model_server, alice, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "gpt-4o-mini"
    assert "works" in press_test(UNCHANGED)
    assert Usage.objects.get().owner == alice


def test_without_javascript_the_result_is_on_the_page(alices, model_server):
    form = own(model_server, rerank_model="small-17", api_key=KEY)
    text = alices.post(reverse("try_model"), form).text
    assert "works: it answered in" in text
    assert 'name="rerank_model" value="small-17"' in text  # What was typed is still there,
    assert f'value="{model_server.base_url}"' in text
    assert KEY not in text  # but for the key, as is said.
    assert "type it again before you save" in text
    assert "Nothing was saved" not in text
    assert not MemorySettings.objects.exists()

"""The key: kept sealed, sent nowhere but where it belongs, and shown to nobody."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace

import pytest
from django.test import RequestFactory
from django.urls import reverse
from django.views.debug import ExceptionReporter

from llm.providers import PRESETS
from settings_app import memory_views
from settings_app.models import MemorySettings, settings_of
from tests.settings_app.form import (
    KEY,
    OPENAI,
    OTHER_KEY,
    UNCHANGED,
    keep,
    own,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("key", ["sk with spaces", "sk-\nline", "sk-‑dash", "ключ", "sk-\x00"])
def test_what_cannot_be_a_key_is_refused_and_not_repeated(connect, key):
    response = connect(OPENAI, api_key=key)
    assert response.status_code == 400
    assert key not in response.text
    assert not MemorySettings.objects.exists()


def test_white_space_around_a_key_is_not_part_of_it(alice, connect):
    connect(OPENAI, api_key=f"  {KEY}\n")
    assert settings_of(alice.pk).endpoint().api_key == KEY


def test_the_key_is_never_sent_back(alices, alice, connect):
    connect(OPENAI, api_key=KEY)
    text = alices.get(reverse("model_settings")).text
    assert KEY not in text
    assert settings_of(alice.pk).sealed_key not in text
    assert "A key is saved." in text
    assert not re.search(r'name="api_key"[^>]*\svalue=', text)


def test_a_form_that_is_refused_does_not_send_it_back_either(connect):
    text = connect(OPENAI, api_key=KEY, model="").text
    assert KEY not in text
    assert "type it again before you save" in text


def test_an_empty_field_keeps_the_key(alice, connect):
    connect(OPENAI, api_key=KEY)
    sealed = settings_of(alice.pk).sealed_key
    connect(OPENAI, model="gpt-5")
    chosen = settings_of(alice.pk)
    assert (chosen.sealed_key, chosen.model) == (sealed, "gpt-5")


def test_another_key_replaces_it(alice, connect):
    connect(OPENAI, api_key=KEY)
    connect(OPENAI, api_key=OTHER_KEY)
    assert settings_of(alice.pk).endpoint().api_key == OTHER_KEY


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"provider": "server", "model": ""},
        {"provider": "none", "model": ""},
        {"provider": "ollama"},
        {"provider": "address", "base_url": "https://models.example.org/v1"},
        {"provider": "address", "base_url": PRESETS["openai"].base_url},
    ],
)
def test_another_provider_drops_the_key(alices, alice, connect, elsewhere):
    connect(OPENAI, api_key=KEY)
    assert connect(OPENAI, **elsewhere).status_code == 302
    chosen = settings_of(alice.pk)
    assert chosen.sealed_key == ""
    assert (
        "The key of the provider before was removed." in alices.get(reverse("model_settings")).text
    )


def test_another_address_drops_the_key(alice, connect):
    first = UNCHANGED | {
        "provider": "address",
        "model": "m",
        "base_url": "https://a.example.org/v1",
    }
    connect(first, api_key=KEY)
    connect(first, base_url="https://b.example.org/v1")
    assert settings_of(alice.pk).endpoint().api_key == ""


def test_another_provider_wants_a_key_of_its_own(alice, connect):
    connect(OPENAI, api_key=KEY)
    response = connect(OPENAI, provider="openrouter")
    assert response.status_code == 400
    assert "OpenRouter needs an API key." in response.text
    assert settings_of(alice.pk).endpoint().api_key == KEY  # Where it was.
    connect(OPENAI, provider="openrouter", api_key=OTHER_KEY)
    assert settings_of(alice.pk).endpoint().api_key == OTHER_KEY


def test_a_key_that_nobody_would_be_sent_is_not_kept(alices, alice, connect):
    connect(api_key=KEY)
    assert not settings_of(alice.pk).has_key
    assert "The key was not kept" in alices.get(reverse("model_settings")).text


def test_a_stale_tab_does_not_carry_the_key_to_another_address(alice, connect):
    """It still shows OpenAI and its saved key; another tab has since gone elsewhere."""
    connect(OPENAI, api_key=KEY)
    elsewhere = {"provider": "address", "base_url": "https://models.example.org/v1"}
    connect(OPENAI, api_key=OTHER_KEY, **elsewhere)
    response = connect(OPENAI)
    assert response.status_code == 400
    assert "OpenAI needs an API key." in response.text
    chosen = settings_of(alice.pk).endpoint()
    assert (chosen.base_url, chosen.api_key) == ("https://models.example.org/v1", OTHER_KEY)


def test_the_key_can_be_removed(alices, alice, connect):
    connect(OPENAI, api_key=KEY)
    assert alices.post(reverse("remove_key")).url == reverse("model_settings")
    assert not settings_of(alice.pk).has_key
    text = alices.get(reverse("model_settings")).text
    assert "The key was removed." in text
    assert "OpenAI needs an API key, and none is set." in text
    assert "A key is saved." not in text


def test_removing_it_in_place_swaps_its_field_only(alices, alice, connect):
    connect(OPENAI, api_key=KEY)
    response = alices.post(reverse("remove_key"), headers={"HX-Request": "true"})
    assert response.text.lstrip().startswith('<div class="field" id="key">')
    assert "The key was removed." in response.text
    assert "A key is saved." not in response.text
    assert not settings_of(alice.pk).has_key


def test_the_rest_can_be_saved_without_the_key_that_was_removed(alices, alice, connect):
    connect(OPENAI, api_key=KEY)
    alices.post(reverse("remove_key"))
    assert connect(OPENAI, rerank_model="r").status_code == 302
    assert settings_of(alice.pk).rerank_model == "r"


def test_removing_a_key_that_is_not_there_makes_no_row(alices):
    assert alices.post(reverse("remove_key")).status_code == 302
    assert not MemorySettings.objects.exists()


def test_the_key_of_others_stays(alices, bob):
    keep(bob)
    alices.post(reverse("remove_key"))
    assert settings_of(bob.pk).endpoint().api_key == KEY


def test_a_changed_secret_gets_a_message(alices, alice, connect, press_test, settings):
    connect(OPENAI, api_key=KEY)
    settings.SECRET_KEY = "another secret"
    alices.force_login(alice)
    text = alices.get(reverse("model_settings")).text
    assert "The key that was saved can no longer be read" in text
    assert "can no longer be read" in press_test()
    assert connect(OPENAI, rerank_model="r").status_code == 302
    assert settings_of(alice.pk).rerank_model == "r"
    connect(OPENAI, api_key=OTHER_KEY)
    assert settings_of(alice.pk).endpoint().api_key == OTHER_KEY


def test_no_log_holds_the_key(connect, press_test, model_server, caplog):
    caplog.set_level(logging.DEBUG)
    connect(own(model_server), api_key=KEY)
    connect(own(model_server, model=""), api_key=KEY)
    press_test(own(model_server))
    assert KEY not in caplog.text


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("view", [memory_views.model_settings, memory_views.try_model])
def test_no_report_of_a_fault_holds_the_key(settings, alice, debug, view):
    """Also not the page that shows everything, where LOCI_DEBUG is on."""
    settings.DEBUG = debug
    request = RequestFactory().post("/settings/", OPENAI | {"api_key": KEY})
    request.htmx = False
    request.user = SimpleNamespace(is_authenticated=True, pk="no number, so that it breaks")
    with pytest.raises(ValueError, match="expected a number") as fault:
        view(request)
    reporter = ExceptionReporter(request, fault.type, fault.value, fault.tb)
    for report in (reporter.get_traceback_html(), reporter.get_traceback_text()):
        assert "gpt-5-mini" in report  # What was sent is in it, the key is not.
        assert KEY not in report

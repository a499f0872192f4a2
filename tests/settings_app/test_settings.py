"""Choosing memory and model: what is taken, what is refused, and where the key never shows up."""

from __future__ import annotations

import logging
import re
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.views.debug import ExceptionReporter

from llm.embedding import deployment_model
from llm.models import Usage
from llm.providers import PRESETS
from settings_app import memory_views
from settings_app.models import MemorySettings, settings_of
from tests.model_server import CHAT, CutOff, NotJson, Slow, Status

pytestmark = pytest.mark.django_db

KEY = "sk-proj-this-is-a-secret-key"
OTHER_KEY = "sk-proj-and-this-is-another"
IN_USE = "local all-MiniLM-L6-v2 384"

# What the form sends when nothing was chosen yet.
UNCHANGED = {
    "enabled": "on",
    "top_k": "5",
    "auto_mine": "on",
    "rerank_model": "",
    "provider": "server",
    "base_url": "",
    "model": "",
    "api_key": "",
    "embedding_model": IN_USE,
}
OPENAI = UNCHANGED | {"provider": "openai", "model": "gpt-5-mini"}


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def save(alices):
    """Sends the form, with these changes to what nobody chose."""

    def post(base=UNCHANGED, **changed):
        return alices.post(reverse("settings"), without_none(base | changed))

    return post


@pytest.fixture
def press_test(alices):
    """Presses it; the sentence that comes in its place."""

    def post(base=OPENAI, **changed):
        headers = {"HX-Request": "true"}
        response = alices.post(reverse("try_model"), without_none(base | changed), headers=headers)
        assert response.status_code == 200
        assert KEY not in response.text
        (sentence,) = re.findall(r'class="outcome">(.*?)</span>', response.text)
        return sentence.replace("&#x27;", "'")

    return post


def without_none(data):
    """None stands for what a browser leaves out, such as a box that is not ticked."""
    return {name: value for name, value in data.items() if value is not None}


def own(model_server, **changed):
    """The form with the model server as one's own address."""
    return UNCHANGED | {
        "provider": "address",
        "base_url": model_server.base_url,
        "model": "gpt-4o-mini",
        **changed,
    }


def keep(owner, provider="openai", model="gpt-5-mini", key=KEY, **more):
    chosen = MemorySettings(owner=owner, provider=provider, model=model, **more)
    chosen.set_key(key)
    chosen.save()
    return chosen


def test_who_chose_nothing_sees_the_defaults_and_has_no_row(alices, alice):
    text = alices.get(reverse("settings")).text
    assert re.search(r'name="enabled"[^>]*checked', text)
    assert re.search(r'name="auto_mine"[^>]*checked', text)
    assert not re.search(r'name="use_rerank"[^>]*checked', text)
    assert re.search(r'name="top_k" value="5"', text)
    assert '<option value="server" selected>' in text
    assert not MemorySettings.objects.exists()


def test_what_was_saved_is_there_again(alices, alice, save):
    response = save(
        enabled=None, top_k="12", auto_mine=None, use_rerank="on", rerank_model="small-one"
    )
    assert response.url == reverse("settings")
    chosen = MemorySettings.objects.get(owner=alice)
    assert (chosen.enabled, chosen.top_k, chosen.auto_mine) == (False, 12, False)
    assert (chosen.use_rerank, chosen.rerank_model) == (True, "small-one")
    text = alices.get(reverse("settings")).text
    assert ">Saved.<" in text
    assert not re.search(r'name="enabled"[^>]*checked', text)
    assert 'name="top_k" value="12"' in text
    assert 'value="small-one"' in text


def test_saving_touches_nobody_elses_choices(bob, save):
    keep(bob, top_k=7)
    before = MemorySettings.objects.filter(owner=bob).values().get()
    save(top_k="31", owner=str(bob.pk), owner_id=str(bob.pk))
    assert MemorySettings.objects.filter(owner=bob).values().get() == before


def test_saving_leaves_the_time_zone_alone(alice, save):
    MemorySettings.objects.create(owner=alice, time_zone="Europe/Berlin")
    save(top_k="9", time_zone="Mars/Olympus")
    chosen = MemorySettings.objects.get(owner=alice)
    assert (chosen.top_k, chosen.time_zone) == (9, "Europe/Berlin")


@pytest.mark.parametrize("top_k", ["1", "50", " 7 "])
def test_how_many_memories_may_be_chosen(alice, save, top_k):
    assert save(top_k=top_k).status_code == 302
    assert settings_of(alice.pk).top_k == int(top_k)


@pytest.mark.parametrize("top_k", ["0", "51", "-1", "", None, "5.5", "many", "9" * 5000, "1e1"])
def test_how_many_may_not(alice, save, top_k):
    response = save(top_k=top_k)
    assert response.status_code == 400
    assert "Write a whole number from 1 to 50." in response.text
    assert "Nothing was saved" in response.text
    assert not MemorySettings.objects.exists()


def test_what_is_wrong_is_said_beside_its_field(save):
    text = save(OPENAI, top_k="0").text
    assert re.search(r'name="top_k"[^>]*aria-invalid="true"', text)
    assert re.search(r'name="top_k"[^>]*aria-describedby="[^"]*id_top_k_error', text)
    assert 'id="id_top_k_error"' in text
    assert 'id="id_api_key_error"' in text


def test_the_embedding_model_in_use_is_shown_and_others_as_not_compatible(alices):
    text = alices.get(reverse("settings")).text
    assert re.search(f'value="{IN_USE}" checked', text)
    assert re.search('value="openai text-embedding-3-small 1536" disabled', text)
    assert "Not compatible with the vectors there are." in text
    assert "manage.py reembed" in text


def test_another_deployments_embedding_model_is_the_one_shown(alices, settings):
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_DIMENSIONS = "openai", 1536
    settings.EMBEDDING_MODEL = "text-embedding-3-small"
    text = alices.get(reverse("settings")).text
    assert re.search('value="openai text-embedding-3-small 1536" checked', text)
    assert re.search(f'value="{IN_USE}" disabled', text)
    assert text.count("text-embedding-3-small") == 2  # Its value and its name, once.


@pytest.mark.parametrize("embedder", ["openai text-embedding-3-small 1536", "", None, "x", "x" * 9])
def test_no_other_embedding_model_can_be_chosen(alice, save, embedder):
    response = save(top_k="9", embedding_model=embedder)
    assert response.status_code == 400
    assert f"Only {deployment_model().name} can be chosen" in response.text
    assert not MemorySettings.objects.exists()


def test_this_servers_model_is_named(alices, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY = "openai", "gpt-5-mini", KEY
    text = alices.get(reverse("settings")).text
    assert "This server’s model: OpenAI (gpt-5-mini)" in text
    assert "Replies come from <strong>OpenAI (gpt-5-mini)</strong>." in text
    assert KEY not in text


def test_that_this_server_has_none_is_said(alices):
    text = alices.get(reverse("settings")).text
    assert "This server’s model: none is set" in text
    assert "There is no model" in text


def test_no_model_can_be_chosen_though_the_server_has_one(alice, save, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY = "openai", "gpt-5-mini", KEY
    assert settings_of(alice.pk).endpoint() is not None
    assert save(provider="none").status_code == 302
    assert settings_of(alice.pk).endpoint() is None


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.base_url])
def test_each_preset_can_be_chosen(alice, alices, save, name):
    assert save(provider=name, model="some-model", api_key=KEY).status_code == 302
    endpoint = settings_of(alice.pk).endpoint()
    assert (endpoint.provider, endpoint.base_url) == (name, PRESETS[name].base_url)
    assert (endpoint.model, endpoint.api_key, endpoint.of_a_user) == ("some-model", KEY, True)
    assert f'<option value="{name}" selected>' in alices.get(reverse("settings")).text


def test_azure_is_an_address_of_ones_own(alice, alices, save):
    refused = save(provider="azure", model="my-deployment", api_key=KEY)
    assert refused.status_code == 400
    assert "Write your own address: https://YOUR-RESOURCE.openai.azure.com" in refused.text
    address = "https://mine.openai.azure.com/openai/v1/"
    assert save(provider="azure", base_url=address, model="d", api_key=KEY).status_code == 302
    assert settings_of(alice.pk).endpoint().base_url == address
    assert '<option value="azure" selected>' in alices.get(reverse("settings")).text


@pytest.mark.parametrize(
    "address",
    [
        "https://models.example.org/v1",
        "http://models.example.org:8080/some/v1/",
        "https://93.184.216.34/v1",
        "https://[2606:4700::1111]/v1",
    ],
)
def test_an_address_of_ones_own_can_be_chosen(alice, alices, save, settings, address):
    settings.PRIVATE_PROVIDERS = False
    assert save(provider="address", base_url=address, model="m").status_code == 302
    assert settings_of(alice.pk).endpoint().base_url == address
    text = alices.get(reverse("settings")).text
    assert '<option value="address" selected>' in text
    assert f'value="{address}"' in text


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("", "Write the address of the model."),
        ("models.example.org", "This is not an address"),
        ("ftp://models.example.org/v1", "This is not an address"),
        ("file:///etc/passwd", "This is not an address"),
        ("gopher://models.example.org", "This is not an address"),
        ("https://", "This is not an address"),
        ("https:///v1", "This is not an address"),
        ("https://[models/v1", "This is not an address"),
        ("https://models.example.org:99999/v1", "This is not an address"),
        ("https://models.example.org:port/v1", "This is not an address"),
        ("https://models.example.org/v1 /x", "This is not an address"),
        ("https://models.example.org/\x7f", "This is not an address"),
        ("https://user:pass@models.example.org/v1", "without a name, a password"),
        ("https://models.example.org/v1?key=x", "anything after a question mark"),
        ("https://models.example.org/v1#x", "anything after a question mark"),
        ("javascript:alert(1)", "This is not an address"),
        ("https://models.example.org/" + "x" * 500, "at most 500 characters"),
    ],
)
def test_what_is_no_address_is_refused(save, address, sentence):
    response = save(provider="address", base_url=address, model="m")
    assert response.status_code == 400
    assert sentence in response.text
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize(
    "address", ["http://localhost:11434/v1", "http://10.0.0.8/v1", "http://169.254.169.254/v1"]
)
def test_the_servers_own_network_is_refused_on_a_server(save, settings, address):
    settings.PRIVATE_PROVIDERS = False
    response = save(provider="address", base_url=address, model="m")
    assert response.status_code == 400
    assert "within this server&#x27;s own network" in response.text
    settings.PRIVATE_PROVIDERS = True
    assert save(provider="address", base_url=address, model="m").status_code == 302


@pytest.mark.parametrize("name", ["ollama", "vllm"])
def test_presets_on_this_machine_are_refused_on_a_server(alices, save, settings, name):
    settings.PRIVATE_PROVIDERS = False
    assert re.search(f'value="{name}" disabled', alices.get(reverse("settings")).text)
    response = save(provider=name, model="qwen3")
    assert response.status_code == 400
    assert "within this server&#x27;s own network" in response.text


@pytest.mark.parametrize("provider", ["", None, "nobody", "https://x.example.org", "OPENAI"])
def test_what_is_not_on_the_list_is_no_provider(save, provider):
    response = save(provider=provider, model="m", api_key=KEY)
    assert response.status_code == 400
    assert KEY not in response.text


def test_a_provider_wants_a_model_and_a_key(save):
    text = save(provider="openai").text
    assert "Name the model, as its provider writes it." in text
    assert "OpenAI needs an API key." in text


def test_a_model_of_any_length_is_not(save):
    assert "at most 200 characters" in save(OPENAI, model="m" * 201, api_key=KEY).text


def test_one_that_runs_at_home_needs_no_key(alice, save):
    assert save(provider="ollama", model="qwen3").status_code == 302
    assert not settings_of(alice.pk).has_key


@pytest.mark.parametrize("key", ["sk with spaces", "sk-\nline", "sk-‑dash", "ключ", "sk-\x00"])
def test_what_cannot_be_a_key_is_refused_and_not_repeated(save, key):
    response = save(OPENAI, api_key=key)
    assert response.status_code == 400
    assert key not in response.text
    assert not MemorySettings.objects.exists()


def test_white_space_around_a_key_is_not_part_of_it(alice, save):
    save(OPENAI, api_key=f"  {KEY}\n")
    assert settings_of(alice.pk).endpoint().api_key == KEY


def test_the_key_is_never_sent_back(alices, alice, save):
    save(OPENAI, api_key=KEY)
    text = alices.get(reverse("settings")).text
    assert KEY not in text
    assert settings_of(alice.pk).sealed_key not in text
    assert "A key is saved." in text
    assert not re.search(r'name="api_key"[^>]*\svalue=', text)


def test_a_form_that_is_refused_does_not_send_it_back_either(save):
    text = save(OPENAI, api_key=KEY, top_k="0").text
    assert KEY not in text
    assert "type it again before you save" in text


def test_an_empty_field_keeps_the_key(alice, save):
    save(OPENAI, api_key=KEY)
    sealed = settings_of(alice.pk).sealed_key
    save(OPENAI, model="gpt-5", top_k="8")
    chosen = settings_of(alice.pk)
    assert (chosen.sealed_key, chosen.model) == (sealed, "gpt-5")


def test_another_key_replaces_it(alice, save):
    save(OPENAI, api_key=KEY)
    save(OPENAI, api_key=OTHER_KEY)
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
def test_another_provider_drops_the_key(alices, alice, save, elsewhere):
    save(OPENAI, api_key=KEY)
    assert save(OPENAI, **elsewhere).status_code == 302
    chosen = settings_of(alice.pk)
    assert chosen.sealed_key == ""
    assert "The key of the provider before was removed." in alices.get(reverse("settings")).text


def test_another_address_drops_the_key(alice, save):
    first = UNCHANGED | {
        "provider": "address",
        "model": "m",
        "base_url": "https://a.example.org/v1",
    }
    save(first, api_key=KEY)
    save(first, base_url="https://b.example.org/v1")
    assert settings_of(alice.pk).endpoint().api_key == ""


def test_another_provider_wants_a_key_of_its_own(alice, save):
    save(OPENAI, api_key=KEY)
    response = save(OPENAI, provider="openrouter")
    assert response.status_code == 400
    assert "OpenRouter needs an API key." in response.text
    assert settings_of(alice.pk).endpoint().api_key == KEY  # Where it was.
    save(OPENAI, provider="openrouter", api_key=OTHER_KEY)
    assert settings_of(alice.pk).endpoint().api_key == OTHER_KEY


def test_a_key_that_nobody_would_be_sent_is_not_kept(alices, alice, save):
    save(api_key=KEY)
    assert not settings_of(alice.pk).has_key
    assert "The key was not kept" in alices.get(reverse("settings")).text


def test_a_stale_tab_does_not_carry_the_key_to_another_address(alice, save):
    """It still shows OpenAI and its saved key; another tab has since gone elsewhere."""
    save(OPENAI, api_key=KEY)
    elsewhere = {"provider": "address", "base_url": "https://models.example.org/v1"}
    save(OPENAI, api_key=OTHER_KEY, **elsewhere)
    response = save(OPENAI)
    assert response.status_code == 400
    assert "OpenAI needs an API key." in response.text
    chosen = settings_of(alice.pk).endpoint()
    assert (chosen.base_url, chosen.api_key) == ("https://models.example.org/v1", OTHER_KEY)


def test_the_key_can_be_removed(alices, alice, save):
    save(OPENAI, api_key=KEY)
    assert alices.post(reverse("remove_key")).url == reverse("settings")
    assert not settings_of(alice.pk).has_key
    text = alices.get(reverse("settings")).text
    assert "The key was removed." in text
    assert "OpenAI needs an API key, and none is set." in text
    assert "A key is saved." not in text


def test_removing_it_in_place_swaps_its_field_only(alices, alice, save):
    save(OPENAI, api_key=KEY)
    response = alices.post(reverse("remove_key"), headers={"HX-Request": "true"})
    assert response.text.lstrip().startswith('<div class="field" id="key">')
    assert "The key was removed." in response.text
    assert "A key is saved." not in response.text
    assert not settings_of(alice.pk).has_key


def test_the_rest_can_be_saved_without_the_key_that_was_removed(alices, alice, save):
    save(OPENAI, api_key=KEY)
    alices.post(reverse("remove_key"))
    assert save(OPENAI, top_k="9").status_code == 302
    assert settings_of(alice.pk).top_k == 9


def test_removing_a_key_that_is_not_there_makes_no_row(alices):
    assert alices.post(reverse("remove_key")).status_code == 302
    assert not MemorySettings.objects.exists()


def test_the_key_of_others_stays(alices, bob):
    keep(bob)
    alices.post(reverse("remove_key"))
    assert settings_of(bob.pk).endpoint().api_key == KEY


def test_a_changed_secret_is_told_in_a_sentence(alices, alice, save, press_test, settings):
    save(OPENAI, api_key=KEY)
    settings.SECRET_KEY = "another secret"
    alices.force_login(alice)
    text = alices.get(reverse("settings")).text
    assert "The key that was saved can no longer be read" in text
    assert "can no longer be read" in press_test()
    assert save(OPENAI, top_k="9").status_code == 302
    assert settings_of(alice.pk).top_k == 9
    save(OPENAI, api_key=OTHER_KEY)
    assert settings_of(alice.pk).endpoint().api_key == OTHER_KEY


@pytest.mark.parametrize(
    ("chosen", "reranker"),
    [
        ({"provider": "openai"}, "Left empty: <code>gpt-5-nano</code>"),
        ({"provider": "ollama"}, "Left empty: the model above."),
        ({"provider": "none"}, "Without a model the order is Loci’s own."),
        ({"provider": ""}, "This server has no model, so the order is Loci’s own."),
    ],
)
def test_which_model_orders_when_none_is_named_is_said(alices, alice, chosen, reranker):
    keep(alice, **chosen)
    text = alices.get(reverse("settings")).text
    part = re.compile(r'<p class="help" data-for="\S+?"( hidden)?>\s*(.*?)\s*</p>', re.DOTALL)
    parts = part.findall(text)
    assert [words for hidden, words in parts if not hidden] == [reranker]


def test_this_servers_small_model_is_said(alices, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY = "openai", "gpt-5", KEY
    text = alices.get(reverse("settings")).text
    server = re.search(r'<p class="help" data-for="server">(.*?)</p>', text, re.DOTALL)
    assert "gpt-5-nano" in server[1]


# The test button.


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
        (CutOff(), "failed or broke off"),
        ("", "answered without a word"),
    ],
)
def test_one_that_does_not_is_told_in_a_sentence(press_test, model_server, caplog, reply, sentence):
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
    assert "is not an address" in sentence or "check that it runs" in sentence


def test_a_model_within_is_not_asked_on_a_server(press_test, model_server, settings):
    settings.PRIVATE_PROVIDERS = False
    assert "within this server's own network" in press_test(own(model_server))
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
    form = own(model_server, top_k="17", api_key=KEY)
    text = alices.post(reverse("try_model"), form).text
    assert "works: it answered in" in text
    assert 'name="top_k" value="17"' in text  # What was typed is still there,
    assert f'value="{model_server.base_url}"' in text
    assert KEY not in text  # but for the key, as is said.
    assert "type it again before you save" in text
    assert "Nothing was saved" not in text
    assert not MemorySettings.objects.exists()


# What is left of a key elsewhere.


def test_no_log_holds_the_key(save, press_test, model_server, caplog):
    caplog.set_level(logging.DEBUG)
    save(own(model_server), api_key=KEY)
    save(own(model_server, top_k="0"), api_key=KEY)
    press_test(own(model_server))
    assert KEY not in caplog.text


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("view", [memory_views.memory_settings, memory_views.try_model])
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


# Two at once.


@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_save_at_once_leave_one_whole_choice(alice):
    forms = [
        OPENAI | {"api_key": KEY, "top_k": "11"},
        OPENAI | {"provider": "openrouter", "api_key": OTHER_KEY, "top_k": "22"},
    ]
    statuses = []
    start = threading.Barrier(len(forms) * 4)

    def save_one(form):
        client = Client()
        client.force_login(alice)
        start.wait()
        statuses.append(client.post(reverse("settings"), form).status_code)
        connection.close()

    threads = [threading.Thread(target=partial(save_one, form)) for form in forms * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [302] * 8
    chosen = MemorySettings.objects.get(owner=alice)
    whole = {("openai", 11, KEY), ("openrouter", 22, OTHER_KEY)}
    assert (chosen.provider, chosen.top_k, chosen.endpoint().api_key) in whole


def test_the_pages_need_few_queries(alices, alice, save):
    save(OPENAI, api_key=KEY)
    with CaptureQueriesContext(connection) as asked:
        alices.get(reverse("settings"))
    # The session, its user, the choices for the time zone, and for the page.
    assert len(asked) <= 4


@pytest.mark.parametrize("name", ["try_model", "remove_key"])
def test_what_acts_is_not_done_by_a_link(alices, name):
    assert alices.get(reverse(name)).status_code == 405


@pytest.mark.parametrize("name", ["settings", "try_model", "remove_key"])
def test_without_sign_in_nothing_happens(client, model_server, name):
    response = client.post(reverse(name), own(model_server))
    assert response.url.startswith(reverse("sign_in"))
    assert model_server.requests == []
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize("name", ["settings", "try_model", "remove_key"])
def test_a_form_of_another_site_is_refused(alice, name):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post(reverse(name), UNCHANGED).status_code == 403
    assert not MemorySettings.objects.exists()

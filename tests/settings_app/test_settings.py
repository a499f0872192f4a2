"""Choosing memory and model: what is taken, and what is refused."""

from __future__ import annotations

import re
import threading
from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from llm.embedding import deployment_model
from llm.providers import PRESETS
from palace.recall import STAGES, recipe_given
from settings_app.memory_views import StageShown, measured_stages
from settings_app.models import MemorySettings, settings_of
from tests.settings_app.form import (
    IN_USE,
    KEY,
    OPENAI,
    OTHER_KEY,
    UNCHANGED,
    keep,
    own,
)

pytestmark = pytest.mark.django_db


def test_the_stages_of_a_search_are_shown_with_what_they_cost_and_give(alices):
    measured = measured_stages()
    assert [(each.name, each.help) for each in measured.stages] == [
        (each.name, each.help) for each in STAGES.values()
    ]
    default = recipe_given("default")
    for each in measured.stages:
        switch = STAGES[each.name].switch
        assert each.is_on == (not switch or bool(getattr(default, switch)))
        assert (each.ms is None) == (not switch or not each.is_on)
    text = alices.get(reverse("settings")).text
    rows = re.findall(r'<th scope="row">(\w+)</th>', text)
    assert rows == list(STAGES)
    assert f"on {measured.questions} questions" in text
    costs = re.findall(r'</td>\s*<td class="number">([^<]+)</td>\s*<td class="number">', text)
    assert costs == [each.costs or "–" for each in measured.stages]


def test_what_a_stage_costs_is_never_less_than_nothing():
    """What is below one millisecond is the noise of measuring, and may come out negative."""
    assert StageShown("a", "", is_on=True, ms=-0.44, points=-0.3).costs == "under 1"
    assert StageShown("a", "", is_on=True, ms=12.87, points=17.8).costs == "13"
    assert StageShown("a", "", is_on=True, ms=12.87, points=-0.3).gives == "−0.3"
    assert StageShown("a", "", is_on=True).costs == StageShown("a", "", is_on=True).gives == ""


def test_who_chose_nothing_sees_the_defaults_and_has_no_row(alices, alice):
    text = alices.get(reverse("settings")).text
    assert re.search(r'name="enabled"[^>]*checked', text)
    assert re.search(r'name="auto_mine"[^>]*checked', text)
    assert re.search(r'name="top_k" value="5"', text)
    text = alices.get(reverse("model_settings")).text
    assert not re.search(r'name="use_rerank"[^>]*checked', text)
    assert '<option value="server" selected>' in text
    assert not MemorySettings.objects.exists()


def test_what_was_saved_is_there_again(alices, alice, save, connect):
    response = save(enabled=None, top_k="12", auto_mine=None)
    assert response.url == reverse("settings")
    text = alices.get(reverse("settings")).text
    assert ">Saved.<" in text
    assert not re.search(r'name="enabled"[^>]*checked', text)
    assert 'name="top_k" value="12"' in text
    response = connect(use_rerank="on", rerank_model="small-one")
    assert response.url == reverse("model_settings")
    assert 'value="small-one"' in alices.get(reverse("model_settings")).text
    chosen = MemorySettings.objects.get(owner=alice)
    # Each page leaves what is on the other as it is.
    assert (chosen.enabled, chosen.top_k, chosen.auto_mine) == (False, 12, False)
    assert (chosen.use_rerank, chosen.rerank_model) == (True, "small-one")


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


def test_what_is_wrong_is_said_beside_its_field(save, connect):
    text = save(top_k="0").text
    assert re.search(r'name="top_k"[^>]*aria-invalid="true"', text)
    assert re.search(r'name="top_k"[^>]*aria-describedby="[^"]*id_top_k_error', text)
    assert 'id="id_top_k_error"' in text
    assert 'id="id_api_key_error"' in connect(OPENAI).text


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
    text = alices.get(reverse("model_settings")).text
    assert "This server’s model: OpenAI (gpt-5-mini)" in text
    assert "Replies come from <strong>OpenAI (gpt-5-mini)</strong>." in text
    assert KEY not in text


def test_that_this_server_has_none_is_said(alices):
    text = alices.get(reverse("model_settings")).text
    assert "This server’s model: none is set" in text
    assert "There is no model" in text


def test_no_model_can_be_chosen_though_the_server_has_one(alice, connect, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY = "openai", "gpt-5-mini", KEY
    assert settings_of(alice.pk).endpoint() is not None
    assert connect(provider="none").status_code == 302
    assert settings_of(alice.pk).endpoint() is None


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.base_url])
def test_each_preset_can_be_chosen(alice, alices, connect, name):
    assert connect(provider=name, model="some-model", api_key=KEY).status_code == 302
    endpoint = settings_of(alice.pk).endpoint()
    assert (endpoint.provider, endpoint.base_url) == (name, PRESETS[name].base_url)
    assert (endpoint.model, endpoint.api_key, endpoint.of_a_user) == ("some-model", KEY, True)
    assert f'<option value="{name}" selected>' in alices.get(reverse("model_settings")).text


def test_azure_is_an_address_of_ones_own(alice, alices, connect):
    refused = connect(provider="azure", model="my-deployment", api_key=KEY)
    assert refused.status_code == 400
    assert "Write your own address: https://YOUR-RESOURCE.openai.azure.com" in refused.text
    address = "https://mine.openai.azure.com/openai/v1/"
    assert connect(provider="azure", base_url=address, model="d", api_key=KEY).status_code == 302
    assert settings_of(alice.pk).endpoint().base_url == address
    assert '<option value="azure" selected>' in alices.get(reverse("model_settings")).text


@pytest.mark.parametrize(
    "address",
    [
        "https://models.example.org/v1",
        "http://models.example.org:8080/some/v1/",
        "https://93.184.216.34/v1",
        "https://[2606:4700::1111]/v1",
    ],
)
def test_an_address_of_ones_own_can_be_chosen(alice, alices, connect, settings, address):
    settings.PRIVATE_PROVIDERS = False
    assert connect(provider="address", base_url=address, model="m").status_code == 302
    assert settings_of(alice.pk).endpoint().base_url == address
    text = alices.get(reverse("model_settings")).text
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
def test_what_is_no_address_is_refused(connect, address, sentence):
    response = connect(provider="address", base_url=address, model="m")
    assert response.status_code == 400
    assert sentence in response.text
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize(
    "address", ["http://localhost:11434/v1", "http://10.0.0.8/v1", "http://169.254.169.254/v1"]
)
def test_the_servers_own_network_is_refused_on_a_server(connect, settings, address):
    settings.PRIVATE_PROVIDERS = False
    response = connect(provider="address", base_url=address, model="m")
    assert response.status_code == 400
    assert "in this server&#x27;s own network" in response.text
    settings.PRIVATE_PROVIDERS = True
    assert connect(provider="address", base_url=address, model="m").status_code == 302


@pytest.mark.parametrize("name", ["ollama", "vllm"])
def test_presets_on_this_machine_are_refused_on_a_server(alices, connect, settings, name):
    settings.PRIVATE_PROVIDERS = False
    assert re.search(f'value="{name}" disabled', alices.get(reverse("model_settings")).text)
    response = connect(provider=name, model="qwen3")
    assert response.status_code == 400
    assert "in this server&#x27;s own network" in response.text


@pytest.mark.parametrize("provider", ["", None, "nobody", "https://x.example.org", "OPENAI"])
def test_what_is_not_on_the_list_is_no_provider(connect, provider):
    response = connect(provider=provider, model="m", api_key=KEY)
    assert response.status_code == 400
    assert KEY not in response.text


def test_a_provider_wants_a_model_and_a_key(connect):
    text = connect(provider="openai").text
    assert "Name the model, as its provider writes it." in text
    assert "OpenAI needs an API key." in text


def test_a_model_of_any_length_is_not(connect):
    assert "at most 200 characters" in connect(OPENAI, model="m" * 201, api_key=KEY).text


def test_one_that_runs_at_home_needs_no_key(alice, save):
    assert save(provider="ollama", model="qwen3").status_code == 302
    assert not settings_of(alice.pk).has_key


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
    text = alices.get(reverse("model_settings")).text
    part = re.compile(r'<p class="help" data-for="\S+?"( hidden)?>\s*(.*?)\s*</p>', re.DOTALL)
    parts = part.findall(text)
    assert [words for hidden, words in parts if not hidden] == [reranker]


@pytest.mark.parametrize("provider", ["none", ""])
def test_a_reranker_of_this_server_is_named(alices, alice, settings, provider):
    settings.RERANKER_PATH = "/models/ms-marco-tiny"
    keep(alice, provider=provider)
    text = alices.get(reverse("model_settings")).text
    assert "reranker, <code>ms-marco-tiny</code>." in text
    assert "Loci’s own" not in text


def test_this_servers_small_model_is_said(alices, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY = "openai", "gpt-5", KEY
    text = alices.get(reverse("model_settings")).text
    server = re.search(r'<p class="help" data-for="server">(.*?)</p>', text, re.DOTALL)
    assert "gpt-5-nano" in server[1]


# Two at once.


@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_save_at_once_leave_one_whole_choice(alice):
    forms = [
        OPENAI | {"api_key": KEY, "rerank_model": "one"},
        OPENAI | {"provider": "openrouter", "api_key": OTHER_KEY, "rerank_model": "two"},
    ]
    statuses = []
    start = threading.Barrier(len(forms) * 4)

    def save_one(form):
        client = Client()
        client.force_login(alice)
        start.wait()
        statuses.append(client.post(reverse("model_settings"), form).status_code)
        connection.close()

    threads = [threading.Thread(target=partial(save_one, form)) for form in forms * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [302] * 8
    chosen = MemorySettings.objects.get(owner=alice)
    whole = {("openai", "one", KEY), ("openrouter", "two", OTHER_KEY)}
    assert (chosen.provider, chosen.rerank_model, chosen.endpoint().api_key) in whole


@pytest.mark.parametrize("name", ["settings", "model_settings"])
def test_the_pages_need_few_queries(alices, connect, name):
    connect(OPENAI, api_key=KEY)
    with CaptureQueriesContext(connection) as asked:
        alices.get(reverse(name))
    # The session, its user, the choices for the time zone, and for the page.
    assert len(asked) <= 4


@pytest.mark.parametrize("name", ["try_model", "remove_key"])
def test_what_acts_is_not_done_by_a_link(alices, name):
    assert alices.get(reverse(name)).status_code == 405


@pytest.mark.parametrize("name", ["settings", "model_settings", "try_model", "remove_key"])
def test_without_sign_in_nothing_happens(client, model_server, name):
    response = client.post(reverse(name), own(model_server))
    assert response.url.startswith(reverse("sign_in"))
    assert model_server.requests == []
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize("name", ["settings", "model_settings", "try_model", "remove_key"])
def test_a_form_of_another_site_is_refused(alice, name):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post(reverse(name), UNCHANGED).status_code == 403
    assert not MemorySettings.objects.exists()


def test_how_to_look_is_thorough_until_another_is_chosen(alices, alice, save):
    assert re.search(r'value="default" checked', alices.get(reverse("settings")).text)
    assert save(recipe="keyword").status_code == 302
    assert settings_of(alice.pk).recipe == "keyword"
    text = alices.get(reverse("settings")).text
    assert re.search(r'value="keyword" checked', text)
    assert not re.search(r'value="(default|fast)" checked', text)


@pytest.mark.parametrize("recipe", ["rerank", "", None, "secret", "x" * 5000])
def test_no_other_way_to_look_is_taken(alice, save, recipe):
    response = save(recipe=recipe)
    assert response.status_code == 400
    assert "Choose a search method from the list." in response.text
    assert not MemorySettings.objects.exists()


def test_a_way_to_look_that_is_no_longer_offered_is_shown_as_the_usual(alices, alice, save):
    MemorySettings.objects.create(owner=alice, recipe="of-last-year")
    assert re.search(r'value="default" checked', alices.get(reverse("settings")).text)
    save(top_k="9")
    chosen = settings_of(alice.pk)
    assert (chosen.top_k, chosen.recipe) == (9, "default")

"""Choosing what happens at night: what is taken, and what is refused."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from settings_app.models import MemorySettings, settings_of

SETTINGS = "/settings/dreams/"
UNCHANGED = {
    "dreams": "local",
    "dream_preferences": "on",
    "dream_limit_usd": "0.25",
    "dream_limit_tokens": "150000",
}


@pytest.fixture
def save(alices):
    """Sends the form, with these changes to what nobody chose; None for what is left out."""

    def post(**changed):
        sent = {name: value for name, value in (UNCHANGED | changed).items() if value is not None}
        return alices.post(SETTINGS, sent)

    return post


def test_who_chose_nothing_sees_the_defaults_and_has_no_row(alices):
    text = alices.get(SETTINGS).text
    assert re.search(r'value="local" checked', text)
    assert re.search(r'name="dream_preferences"[^>]*checked', text)
    assert 'name="dream_limit_usd" value="0.25"' in text
    assert 'name="dream_limit_tokens" value="150000"' in text
    assert not re.search(r'name="dream_trusted"[^>]*checked', text)
    assert 'href="/settings/dreams/" aria-current="page"' in text
    assert not MemorySettings.objects.exists()


def test_what_was_saved_is_there_again_and_nothing_else_is_touched(alices, alice, bob, save):
    MemorySettings.objects.create(owner=alice, top_k=9, time_zone="Europe/Berlin")
    MemorySettings.objects.create(owner=bob, dreams="off")
    response = save(
        dreams="model",
        dream_preferences=None,
        dream_limit_usd="1.5",
        dream_limit_tokens="20000",
        dream_trusted=["merge", "refine"],
        owner=str(bob.pk),
    )
    assert response.url == SETTINGS
    chosen = settings_of(alice.pk)
    assert (chosen.dreams, chosen.dream_preferences) == ("model", False)
    assert (chosen.dream_limit_usd, chosen.dream_limit_tokens) == (Decimal("1.5"), 20_000)
    assert chosen.dream_trusted == ["merge", "refine"]
    assert (chosen.top_k, chosen.time_zone) == (9, "Europe/Berlin")
    assert settings_of(bob.pk).dreams == "off"
    text = alices.get(SETTINGS).text
    assert ">Saved.<" in text
    assert re.findall(r'name="dream_trusted"[^>]*value="(\w+)" checked', text) == [
        "merge",
        "refine",
    ]
    assert 'name="dream_limit_usd" value="1.5"' in text
    save(dream_trusted=None)
    assert settings_of(alice.pk).dream_trusted == []


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("dreams", "sometimes", "Choose what happens at night from the list."),
        ("dreams", None, "Choose what happens at night from the list."),
        ("dream_limit_usd", "-1", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "1001", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "0.00001", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "9" * 400, "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "NaN", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_usd", "a dollar", "Write an amount in dollars from 0 to 1,000"),
        ("dream_limit_tokens", "-1", "Write a whole number of tokens from 0 to 100,000,000."),
        ("dream_limit_tokens", "1.5", "Write a whole number of tokens from 0 to 100,000,000."),
        ("dream_limit_tokens", "9" * 5000, "Write a whole number of tokens"),
        ("dream_limit_tokens", None, "Write a whole number of tokens from 0 to 100,000,000."),
        ("dream_trusted", ["merge", "burn"], "There is no such kind of proposal."),
    ],
)
def test_what_is_refused_is_said_beside_its_field(alice, save, field, value, sentence):
    response = save(**{field: value})
    assert response.status_code == 400
    assert response.text.count(sentence) == 1
    assert "Nothing was saved" in response.text
    assert not MemorySettings.objects.exists()


@pytest.mark.parametrize(("usd", "tokens"), [("0", "0"), ("1000", "100000000"), ("0.0001", " 7 ")])
def test_what_may_be_chosen(alice, save, usd, tokens):
    assert save(dream_limit_usd=usd, dream_limit_tokens=tokens).status_code == 302
    chosen = settings_of(alice.pk)
    assert (chosen.dream_limit_usd, chosen.dream_limit_tokens) == (Decimal(usd), int(tokens))


def test_a_wrong_field_is_marked_and_names_its_error(save):
    text = save(dream_limit_usd="x").text
    assert re.search(r'name="dream_limit_usd"[^>]*aria-invalid="true"', text)
    assert re.search(
        r'name="dream_limit_usd"[^>]*aria-describedby="[^"]*id_dream_limit_usd_error', text
    )


def test_it_says_which_model_would_be_asked(alices, settings):
    assert "There is no model at the moment" in alices.get(SETTINGS).text
    settings.LLM_PROVIDER, settings.LLM_MODEL = "ollama", "a-model"
    assert "It asks" in alices.get(SETTINGS).text


@pytest.mark.parametrize("name", ["dream_settings", "model_uses", "dream_now", "activities"])
def test_what_works_without_a_model_is_called_so(alices, palace, name):
    assert "local rules" not in alices.get(reverse(name)).text.lower()

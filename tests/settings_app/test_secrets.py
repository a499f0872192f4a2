"""Keys at rest: unreadable without the server's secret, and never the same twice."""

from __future__ import annotations

import pytest
from django.db import connection

from llm.errors import ModelRefused
from settings_app.models import MemorySettings, settings_of
from settings_app.secrets import Unreadable, seal, unseal

KEY = "sk-proj-this-is-a-secret-key"


@pytest.mark.parametrize("secret", [KEY, "k", "ключ 钥匙", "x" * 2000])
def test_what_was_sealed_can_be_read_again(secret):
    assert unseal(seal(secret)) == secret


def test_the_sealed_text_differs_each_time_and_shows_nothing():
    first, second = seal(KEY), seal(KEY)
    assert first != second
    assert KEY not in first
    assert "secret" not in first


@pytest.mark.parametrize("damage", [lambda text: text[:-4], lambda text: "A" + text, lambda _: "x"])
def test_what_is_damaged_is_unreadable(damage):
    with pytest.raises(Unreadable):
        unseal(damage(seal(KEY)))


def test_under_another_secret_it_is_unreadable(settings):
    sealed = seal(KEY)
    settings.SECRET_KEY = "another secret"
    with pytest.raises(Unreadable):
        unseal(sealed)


@pytest.mark.django_db
def test_the_database_holds_no_key(alice):
    chosen = settings_of(alice.pk)
    chosen.provider, chosen.model = "openai", "gpt-5-mini"
    chosen.set_key(KEY)
    chosen.save()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(row)::text FROM settings_app_memorysettings row")
        ((stored,),) = cursor.fetchall()
    assert "gpt-5-mini" in stored
    assert KEY not in stored
    assert "secret" not in stored


@pytest.mark.django_db
def test_a_key_of_another_secret_gets_a_message(alice, settings):
    chosen = MemorySettings(owner=alice, provider="openai", model="gpt-5-mini")
    chosen.set_key(KEY)
    settings.SECRET_KEY = "another secret"
    with pytest.raises(ModelRefused, match="can no longer be read") as refusal:
        chosen.endpoint()
    # Neither what was sealed nor the cipher's own error hangs on to it, for a log to write.
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__
    assert "Enter it again" in chosen.connection().note


@pytest.mark.parametrize("text", [str, repr])
def test_no_description_of_an_endpoint_shows_the_key(text):
    chosen = MemorySettings(provider="openai", model="gpt-5-mini")
    chosen.set_key(KEY)
    assert chosen.endpoint().api_key == KEY
    assert KEY not in text(chosen.endpoint())
    assert KEY not in text(chosen.connection())

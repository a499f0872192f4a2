"""Alice at her settings; and each test begins without the guesses of the one before."""

from __future__ import annotations

import re

import pytest
import redis
from django.conf import settings
from django.urls import reverse

from tests.settings_app.form import KEY, OPENAI, UNCHANGED, without_none


@pytest.fixture(autouse=True)
def counters():
    """The Redis that holds counts of guesses, which outlast a test as they outlast a request."""
    store = redis.Redis.from_url(settings.REDIS_URL)
    yield store
    for key in store.scan_iter("*:attempts:*"):
        store.delete(key)
    store.close()


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def save(alices):
    """Sends the form of the general page, with these changes to what nobody chose."""

    def post(base=UNCHANGED, **changed):
        return alices.post(reverse("settings"), without_none(base | changed))

    return post


@pytest.fixture
def connect(alices):
    """Sends the form of the model's page, likewise."""

    def post(base=UNCHANGED, **changed):
        return alices.post(reverse("model_settings"), without_none(base | changed))

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


GOOD = "a lamp in every window"


CAROL = {"username": "carol", "password": GOOD, "again": GOOD}


def sign_up(client, **given):
    return client.post(reverse("sign_up"), {**CAROL, **given})


def sign_in(client, name, password):
    return client.post(reverse("sign_in"), {"username": name, "password": password})


def signed_in_as(client):
    return client.session.get("_auth_user_id")

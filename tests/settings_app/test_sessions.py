"""The list of where one is signed in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from settings_app.sessions import SEEN_EVERY, Session, device_of
from tests.settings_app.conftest import sign_in, signed_in_as

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/137.0.0.0 Safari/537.36 Edg/137.0.0.0"
)


def browser(agent, name="alice"):
    made = Client(HTTP_USER_AGENT=agent)
    sign_in(made, name, f"{name}-password")
    return made


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (SAFARI, "Safari on iPhone"),
        (EDGE, "Edge on Windows"),
        ("curl/8.0", ""),
        ("", ""),
    ],
)
def test_a_browser_is_named_as_people_do(agent, name):
    assert device_of(agent) == name


def test_the_account_lists_where_one_is_signed_in_and_ends_one(alice, bob):
    here, phone, odd = browser(FIREFOX), browser(SAFARI), browser("curl/8.0")
    bobs = browser(EDGE, "bob")
    page = here.get(reverse("account")).text
    assert 'Firefox on Linux</strong> <span class="muted">(this browser)' in page
    assert "Safari on iPhone" in page
    assert "A browser" in page
    assert "Edge" not in page
    keys = Session.objects.values_list("session_key", flat=True)
    assert not any(key in page for key in keys)

    of_phone = Session.objects.get(pk=phone.session.session_key).public_id
    assert of_phone in page
    here.post(reverse("account"), {"do": "sign_out_one", "session": of_phone})
    assert phone.get(reverse("account")).status_code == 302
    assert signed_in_as(odd)
    # Neither one's own, nor somebody else's.
    for each in (here, bobs):
        its = Session.objects.get(pk=each.session.session_key).public_id
        here.post(reverse("account"), {"do": "sign_out_one", "session": its})
        assert signed_in_as(each)
    here.post(reverse("account"), {"do": "sign_out_elsewhere"})
    assert odd.get(reverse("account")).status_code == 302
    assert here.get(reverse("account")).status_code == 200


def test_when_it_was_last_used_is_noted_every_few_minutes(alices):
    row = Session.objects.filter(pk=alices.session.session_key)
    moments_ago = timezone.now() - timedelta(seconds=30)
    row.update(seen_at=moments_ago)
    alices.get(reverse("account"))
    assert row.get().seen_at == moments_ago
    row.update(seen_at=timezone.now() - SEEN_EVERY)
    alices.get(reverse("account"))
    assert timezone.now() - row.get().seen_at < timedelta(minutes=1)


def test_without_a_password_no_list_shows(client, db):
    owner = get_user_model().objects.create_superuser("owner")
    Client(HTTP_USER_AGENT=SAFARI).force_login(owner)
    client.force_login(owner)
    page = client.get(reverse("account")).text
    assert "1 browser may open your palace" in page
    assert "sign_out_one" not in page

"""The list of connected apps, and ending one."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from api.models import ConnectedApp, Token
from api.oauth import grants
from settings_app.accounts import close
from tests.api.oauth.conftest import connect

PAGE = reverse("connected_apps")


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


def test_the_list_says_what_each_may_and_where(alices, alice, bob):
    connect(alice)
    connect(alice, "Notes", subject=None)
    connect(bob, "Bobs")
    page = alices.get(PAGE).text
    assert page.index("Notes") < page.index("Claude")
    for words in ("claude.example.org", "read, write", "your own palace", "all of your palaces"):
        assert words in page
    assert "Bobs" not in page
    assert "http://testserver/mcp" not in page


def test_nothing_is_connected_yet(alices):
    assert "No apps yet." in alices.get(PAGE).text


def test_an_app_is_ended_after_a_question(alices, alice, bob):
    app, issued = connect(alice)
    assert grants.key_of_access_token(issued.access, app.resource) is not None
    address = reverse("end_app", args=[app.uuid])
    assert "Disconnect “Claude”?" in alices.get(address).text
    page = alices.post(address, follow=True).text
    assert "“Claude” is disconnected" in page
    assert grants.key_of_access_token(issued.access, app.resource) is None
    assert not Token.objects.exists()
    assert "Disconnect<" not in page
    assert "It is disconnected already." in alices.get(address).text
    theirs, kept = connect(bob)
    for method in (alices.get, alices.post):
        assert method(reverse("end_app", args=[theirs.uuid])).status_code == 404
    assert grants.key_of_access_token(kept.access, theirs.resource) is not None


def test_a_connected_app_is_in_no_list_of_keys(alices, alice):
    connect(alice)
    assert "No program has a key yet." in alices.get(reverse("api_keys")).text


def test_what_expired_is_said_to_be_so(alices, alice):
    app, _ = connect(alice)
    app.key.expires_at = timezone.now()
    app.key.save()
    assert ">expired<" in alices.get(PAGE).text


def test_a_closed_account_leaves_no_connection(alice):
    connect(alice)
    close(alice, but=())
    assert not ConnectedApp.objects.exists()
    assert not Token.objects.exists()


def test_only_its_owner_looks(client):
    assert client.get(PAGE).url.startswith(reverse("sign_in"))

"""The page of keys: made and shown once, listed, revoked; and what programs changed with them."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from palace.models import Palace
from settings_app.api_keys import ApiKey, issue, key_of

PAGE = "/settings/keys/"


def form(**given):
    usual = {"key_id": str(uuid.uuid4()), "name": "notes", "scopes": ["read"], "palaces": "all"}
    return {**usual, **given}


def make(client, **given):
    """The key's text, as the page shows it."""
    response = client.post(PAGE, form(**given))
    assert response.status_code == 200
    (text,) = set(re.findall(r"loci_[\w-]{43}", response.text))
    return text


def test_a_key_is_shown_in_one_answer_that_nobody_stores_and_nowhere_else(alices):
    sent = form()
    made = alices.post(PAGE, sent)
    (text,) = set(re.findall(r"loci_[\w-]{43}", made.text))
    assert "no-store" in made.headers["Cache-Control"]
    assert text not in str(dict(alices.session))
    assert key_of(text).name == "notes"
    again = alices.post(PAGE, sent, follow=True)  # As a reload sends it.
    assert again.redirect_chain == [(PAGE, 302)]
    assert "made already" in again.text
    assert text not in again.text
    assert text[:11] in again.text
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({"palaces": "all", "subject": "left over"}, None),
        ({"palaces": "own"}, ""),
        ({"palaces": "one", "subject": " Anna "}, " Anna "),
    ],
)
def test_where_a_key_opens_is_as_chosen(alices, given, subject):
    key = key_of(make(alices, **given))
    assert key.subject == subject
    assert key.scopes == ["read"]
    assert key.expires_at is None


def test_a_key_may_end_by_itself(alices):
    key = key_of(make(alices, scopes=["read", "admin"], expires="30"))
    assert key.scopes == ["read", "admin"]
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_a_key_trusts_open_webui_only_where_that_is_ticked(alices):
    assert not key_of(make(alices)).trusts_open_webui
    assert "as Open WebUI says" not in alices.get(PAGE).text
    assert key_of(make(alices, trusts_open_webui="on")).trusts_open_webui
    assert "as Open WebUI says" in alices.get(PAGE).text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": " "}, "Give it a name"),
        ({"scopes": []}, "Choose at least one"),
        ({"scopes": ["everything"]}, "Select a valid choice"),
        ({"palaces": "one", "subject": "  "}, "its user_id"),
        ({"palaces": "one", "subject": "a\0b"}, "Null characters"),
        ({"expires": "-3"}, "Select a valid choice"),
        ({"key_id": "7"}, "Reload the page"),
    ],
)
def test_what_is_wrong_with_the_form_is_reported_and_no_key_is_made(alices, wrong, said):
    response = alices.post(PAGE, form(**wrong))
    assert response.status_code == 400
    assert said in response.text
    assert not ApiKey.objects.exists()


def test_the_list_distinguishes_keys_and_suggests_people(alices, alice, bob):
    Palace.objects.create(owner=alice, subject="Anna")
    Palace.objects.create(owner=bob, subject="Berta")
    issue(alice, "a working one", subject="Anna")
    issue(alice, "an old one", expires_at=timezone.now() - timedelta(days=1))
    issue(alice, "a stopped one")[0].revoke()
    issue(bob, "a stranger's")
    page = alices.get(PAGE).text
    assert '<option value="Anna">' in page
    assert "Berta" not in page
    assert "stranger" not in page
    assert re.findall(r'key-state">(\w+)', page) == ["expired", "revoked"]
    assert page.index("an old one") < page.index("a stopped one")
    assert "the palace of “Anna”" in page


def test_a_key_is_revoked_after_a_question(alices, alice):
    key, text = issue(alice, "lost laptop")
    address = reverse("revoke_key", args=[key.uuid])
    assert "Revoke “lost laptop”?" in alices.get(address).text
    assert key_of(text) == key
    assert "is revoked" in alices.post(address, follow=True).text
    assert key_of(text) is None
    revoked_at = ApiKey.objects.get().revoked_at
    alices.post(address)
    assert ApiKey.objects.get().revoked_at == revoked_at


def test_a_key_of_nobody_is_no_strangers_either(alices, bob):
    key, text = issue(bob, "his")
    for method in (alices.get, alices.post):
        assert method(reverse("revoke_key", args=[key.uuid])).status_code == 404
    assert key_of(text) == key


def test_operators_do_not_see_keys(client, alice):
    assert not admin.site.is_registered(ApiKey)
    key, _ = issue(alice, "notes")
    alice.is_staff = alice.is_superuser = True
    alice.save()
    client.force_login(alice)
    pages = [reverse("admin:auth_user_change", args=[alice.pk])]
    pages += [reverse("admin:auth_user_delete", args=[alice.pk])]
    for page in pages:
        assert key.digest not in client.get(page).text
    asked = reverse("admin:auth_user_changelist") + f"?api_keys__digest__startswith={key.digest[0]}"
    assert client.get(asked).status_code == 400


def test_a_fault_while_a_key_is_shown_is_reported_without_it(alices, settings, tmp_path):
    settings.DEBUG = True
    broken = tmp_path / "settings_app/key_made.html"
    broken.parent.mkdir()
    broken.write_text("{% include 'no-such-part.html' %}")
    ours, *others = settings.TEMPLATES
    settings.TEMPLATES = [{**ours, "DIRS": [tmp_path, *ours["DIRS"]]}, *others]
    alices.raise_request_exception = False
    response = alices.post(PAGE, form())
    assert response.status_code == 500
    assert "no-such-part.html" in response.text
    assert not re.search(r"loci_[\w-]{43}", response.text)

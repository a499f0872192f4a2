"""Signing in, and the account: passwords, sessions, names from before."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from config.tasks import forget_ended_sessions
from settings_app.accounts import one_time_link, people_called
from settings_app.sessions import Session
from tests.settings_app.conftest import CAROL, GOOD, sign_in, signed_in_as


def change_password(client, password, *, old=None, again=None):
    sent = {"do": "password", "password": password, "again": again or password}
    return client.post(reverse("account"), sent if old is None else {**sent, "old": old})


# Signing in.


def test_a_name_may_be_written_in_capital_letters(client, alice):
    assert sign_in(client, "ALICE", "alice-password").status_code == 302
    assert signed_in_as(client) == str(alice.pk)


def test_a_session_from_before_signing_in_is_not_kept(client, alice):
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    client.cookies["sessionid"] = session.session_key
    sign_in(client, "alice", "alice-password")
    assert client.session.session_key != session.session_key
    assert not Session.objects.filter(pk=session.session_key).exists()


def test_another_person_at_the_same_browser_gets_nothing_of_the_session(alices, bob):
    session = alices.session
    session["private"] = "Alice's"
    session.save()
    link = one_time_link(bob)
    alices.get(link)
    assert signed_in_as(alices) == str(bob.pk)
    assert "private" not in alices.session


@pytest.mark.parametrize(
    "where",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example/",
        "\\\\elsewhere.example",
        "javascript:alert(1)",
        "https:elsewhere.example",
        "///elsewhere.example",
        " //elsewhere.example",
        "/\t/elsewhere.example",
        "http://testserver@elsewhere.example/",
    ],
)
def test_no_address_leads_away_from_here(client, alice, where):
    home = client.post(reverse("sign_in"), {"username": "alice", "password": "alice-password"}).url
    client.logout()
    sent = {"username": "alice", "password": "alice-password", "next": where}
    assert client.post(reverse("sign_in"), sent).url == home
    assert client.get(reverse("sign_in"), {"next": where}).url == home


@pytest.mark.parametrize("where", ["/sign-in/", "/sign-in/?next=/sign-in/"])
def test_who_is_signed_in_does_not_go_round_in_circles(alices, where):
    response = alices.get(reverse("sign_in"), {"next": where}, follow=True)
    assert response.status_code == 200
    assert len(response.redirect_chain) <= 2


def test_forms_of_accounts_need_their_token(alice):
    client = Client(enforce_csrf_checks=True)
    for name in ("sign_in", "sign_up"):
        response = client.post(reverse(name), CAROL)
        assert response.status_code == 403
        assert "This form is out of date" in response.text
    client.force_login(alice)
    for name in ("account", "sign_out"):
        assert client.post(reverse(name), {"do": "sign_out_elsewhere"}).status_code == 403


# The account.


def test_the_account_is_only_for_its_owner(client, alices, bob):
    page = alices.get(reverse("account"))
    assert "<strong>alice</strong>" in page.text
    assert "no-store" in page.headers["Cache-Control"]
    stranger = Client()
    assert stranger.get(reverse("account")).url.startswith(reverse("sign_in"))
    assert stranger.post(reverse("account"), {"do": "password"}).url.startswith(reverse("sign_in"))


@pytest.mark.parametrize(
    ("name", "tab", "beside"),
    [
        ("settings", "General", ["account"]),
        ("account", "General", ["settings"]),
        (
            "model_settings",
            "Model &amp; privacy",
            ["model_uses", "sent", "dream_settings", "costs"],
        ),
        ("sent", "Model &amp; privacy", ["model_settings", "costs"]),
        ("data_settings", "Data", []),
        (
            "working_memory",
            "Developers",
            ["api_keys", "connected_apps", "webhooks", "recall_cases", "api:reference"],
        ),
    ],
)
def test_the_pages_of_settings_lead_to_each_other(alices, name, tab, beside):
    page = alices.get(reverse(name)).text
    tabs = re.search(
        r'<nav class="tabs settings-tabs" aria-label="Settings">(.*?)</nav>', page, re.DOTALL
    )[1]
    assert re.findall(r">([^<]+)</a>", tabs) == [
        "General",
        "Model &amp; privacy",
        "Data",
        "Developers",
    ]
    assert re.findall(r'aria-current="true">([^<]+)<', tabs) == [tab]
    for other in beside:
        assert f'<a href="{reverse(other)}"' in page
    assert not beside or f'<a href="{reverse(name)}" aria-current="page">' in page


def test_a_new_password_keeps_this_session_and_ends_the_others(alices, alice):
    elsewhere = Client()
    elsewhere.force_login(alice)
    before = alices.session.session_key
    assert "1 browser may open" in alices.get(reverse("account")).text
    response = change_password(alices, GOOD, old="alice-password")
    assert "The new password is set." in alices.get(response.url).text
    assert signed_in_as(alices) == str(alice.pk)
    assert alices.session.session_key != before
    assert elsewhere.get(reverse("memory")).status_code == 302
    assert Session.objects.filter(owner=alice).count() == 1
    assert sign_in(Client(), "alice", GOOD).status_code == 302
    assert sign_in(Client(), "alice", "alice-password").status_code == 200


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"password": GOOD}, "This field is required."),
        ({"password": GOOD, "old": "not it"}, "This is not your password."),
        ({"password": "short", "old": "alice-password"}, "at least 8 characters"),
        ({"password": GOOD, "old": "alice-password", "again": "x"}, "are not the same"),
    ],
)
def test_a_password_that_cannot_be_changed_stays(alices, alice, given, sentence):
    response = change_password(alices, **given)
    assert response.status_code == 400
    assert sentence in response.text
    assert GOOD not in response.text
    alice.refresh_from_db()
    assert alice.check_password("alice-password")


def test_who_came_by_a_link_sets_a_password_without_an_old_one(client, alice):
    alice.set_unusable_password()
    alice.save()
    client.get(one_time_link(alice))
    page = client.get(reverse("account")).text
    assert "You have no password yet" in page
    assert 'name="old"' not in page
    assert change_password(client, GOOD).status_code == 302
    assert sign_in(Client(), "alice", GOOD).status_code == 302
    # In the tab that is still open the first form stands: now the password is asked for.
    response = change_password(client, "another lamp entirely")
    assert response.status_code == 400
    assert 'name="old"' in response.text


def test_in_two_tabs_the_second_change_needs_the_first_ones_password(alices, alice):
    change_password(alices, GOOD, old="alice-password")
    assert change_password(alices, "my own words", old="alice-password").status_code == 400
    assert change_password(alices, "my own words", old=GOOD).status_code == 302


def test_a_stolen_session_cannot_guess_the_password_for_long(alices, alice):
    for guess in range(10):
        assert change_password(alices, GOOD, old=f"guess {guess}").status_code == 400
    response = change_password(alices, GOOD, old="alice-password")
    assert response.status_code == 429
    assert "There were 10 wrong attempts." in response.text
    alice.refresh_from_db()
    assert alice.check_password("alice-password")


def test_signing_out_everywhere_else_leaves_this_browser_and_other_people(alices, alice, bob):
    elsewhere, bobs = Client(), Client()
    elsewhere.force_login(alice)
    bobs.force_login(bob)
    sent = {"do": "sign_out_elsewhere"}
    assert alices.post(reverse("account"), sent).url == reverse("account")
    assert "Only in this browser." in alices.get(reverse("account")).text
    assert elsewhere.get(reverse("memory")).status_code == 302
    assert bobs.get(reverse("memory")).status_code == 200


def test_signing_out_leaves_no_session_behind(alices, alice):
    assert Session.objects.filter(owner=alice).count() == 1
    alices.post(reverse("sign_out"))
    assert not Session.objects.filter(owner=alice).exists()


def test_sessions_whose_time_is_up_are_forgotten(alices, alice):
    ended = Client()
    ended.force_login(alice)
    key = ended.session.session_key
    Session.objects.filter(pk=key).update(expire_date=timezone.now())
    assert ended.get(reverse("memory")).status_code == 302
    for _ in range(2):
        forget_ended_sessions()
    assert not Session.objects.filter(pk=key).exists()
    assert alices.get(reverse("memory")).status_code == 200
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert forget_ended_sessions.name in scheduled


@pytest.mark.parametrize("sent", [{}, {"do": "fly"}, {"do": ["password", "fly"]}])
def test_what_the_account_does_not_know_is_refused(alices, sent):
    assert alices.post(reverse("account"), sent).status_code == 400


def test_an_account_is_changed_by_its_owner_only(alices, alice, bob):
    """There is no id in the address: what is sent along is not listened to either."""
    sent = {"do": "time_zone", "time_zone": "Asia/Tokyo", "owner": bob.pk, "user": bob.pk}
    alices.post(reverse("account"), sent)
    assert not hasattr(get_user_model().objects.get(pk=bob.pk), "memory_settings")
    assert get_user_model().objects.get(pk=alice.pk).memory_settings.time_zone == "Asia/Tokyo"


def test_a_session_of_somebody_deleted_signs_nobody_in(alices, alice):
    alice.delete()
    assert alices.get(reverse("memory")).url.startswith(reverse("sign_in"))


# Names from before.


def test_names_are_found_however_they_are_written(alice):
    assert list(people_called("ＡＬＩＣＥ")) == [alice]
    assert not people_called("alicia").exists()


def test_two_users_of_one_name_from_before_stop_the_upgrade_with_a_sentence(db):
    from importlib import import_module  # noqa: PLC0415 - a migration's name begins with a digit.

    from django.apps import apps  # noqa: PLC0415

    migration = import_module("settings_app.migrations.0002_sessions_and_names")
    migration.refuse_two_of_one_name(apps, None)
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX user_name_folded")
    for name in ("dora", "Dora"):
        get_user_model().objects.create_user(name)
    with pytest.raises(CommandError, match="dora and Dora"):
        migration.refuse_two_of_one_name(apps, None)

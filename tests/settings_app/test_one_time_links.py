from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from settings_app.accounts import FIRST_LINK_LASTS, LinkRefused, find_owner, one_time_link, redeem

FRESH_LINK = "manage.py sign_in_link"


def is_signed_in(client):
    return "_auth_user_id" in client.session


def token_of(link):
    return link.rstrip("/").rsplit("/", 1)[1]


def test_a_link_signs_in_and_leads_to_the_memory(client, alice):
    response = client.get(one_time_link(alice))
    assert response.url == reverse("chat")
    assert client.session["_auth_user_id"] == str(alice.pk)


def test_a_link_is_not_passed_on_as_a_referrer_or_kept(client, alice):
    link = one_time_link(alice)
    for _ in range(2):
        response = client.get(link)
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "no-store" in response.headers["Cache-Control"]
        client.logout()


def test_a_link_works_once_and_then_says_what_to_do(alice):
    link = one_time_link(alice)
    Client().get(link)
    second = Client()
    response = second.get(link)
    assert response.status_code == 403
    assert "This link has been used already." in response.text
    assert FRESH_LINK in response.text
    assert not is_signed_in(second)


def outcome_of(token):
    """Of the claim alone: a sign-in would change the account and so end the link as well."""
    try:
        redeem(token)
    except LinkRefused:
        return "refused"
    else:
        return "in"
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_only_one_gets_in(alice):
    token = token_of(one_time_link(alice))
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(outcome_of, [token] * 8))
    assert sorted(outcomes) == ["in"] + ["refused"] * 7


def test_clicking_a_used_link_again_in_the_same_browser_just_goes_on(client, alice):
    link = one_time_link(alice)
    client.get(link)
    assert client.get(link).url == reverse("chat")


def test_a_used_link_does_not_let_somebody_else_go_on(client, alice, bob):
    link = one_time_link(alice)
    Client().get(link)
    client.force_login(bob)
    assert client.get(link).status_code == 403


def test_a_link_is_refused_when_it_is_too_old(client, alice):
    link = one_time_link(alice, lasts=timedelta(seconds=-1))
    response = client.get(link)
    assert response.status_code == 403
    assert "This link is too old." in response.text
    assert FRESH_LINK in response.text
    assert not is_signed_in(client)


def test_the_first_link_outlasts_a_night(alice, client):
    link = one_time_link(alice, lasts=FIRST_LINK_LASTS)
    assert timedelta(hours=12) < FIRST_LINK_LASTS <= timedelta(hours=24)
    assert client.get(link).status_code == 302


def test_a_sign_in_by_other_ways_ends_a_link(client, alice):
    link = one_time_link(alice)
    Client().post(reverse("sign_in"), {"username": "alice", "password": "alice-password"})
    client.get(link)
    assert not is_signed_in(client)


def test_a_new_password_ends_a_link(client, alice):
    link = one_time_link(alice)
    alice.set_password("another-password")
    alice.save()
    client.get(link)
    assert not is_signed_in(client)


def test_an_account_that_was_closed_is_not_signed_in(client, alice):
    link = one_time_link(alice)
    alice.is_active = False
    alice.save()
    assert client.get(link).status_code == 403


@pytest.mark.parametrize("damage", [lambda t: t[:-1], lambda t: "x" + t, lambda t: "x"])
def test_a_damaged_link_is_refused(client, alice, damage):
    token = damage(token_of(one_time_link(alice)))
    response = client.get(reverse("sign_in_once", args=[token]))
    assert response.status_code == 403
    assert "This link is not complete" in response.text
    assert not is_signed_in(client)


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}],
)
def test_fetching_ahead_does_not_use_the_link_up(client, alice, headers):
    link = one_time_link(alice)
    assert client.get(link, headers=headers).status_code == 503
    assert client.head(link).status_code == 405
    assert not is_signed_in(client)
    client.get(link)
    assert is_signed_in(client)


@pytest.mark.parametrize("logger", ["uvicorn.access", "django.request", "django.server"])
def test_no_log_holds_a_token(alice, caplog, logger):
    link = one_time_link(alice)
    with caplog.at_level(logging.INFO), caplog.at_level(logging.INFO, logger):
        logging.getLogger(logger).info('%s - "%s %s HTTP/%s" %d', "::1", "GET", link, "1.1", 302)
        logging.getLogger(logger).info("Forbidden: " + link)  # noqa: G003
    assert token_of(link) not in caplog.text
    assert caplog.text.count("/sign-in/once/(hidden)/") == 2


def test_a_refused_link_leaves_no_token_in_the_log(client, alice, caplog):
    link = one_time_link(alice)
    Client().get(link)
    client.get(link)
    assert "Forbidden" in caplog.text
    assert token_of(link) not in caplog.text


def test_the_command_prints_a_link_for_the_owner(client, alice, bob):
    bob.is_superuser = True
    bob.save()
    printed = StringIO()
    call_command("sign_in_link", "--base", "http://testserver/", stdout=printed, stderr=StringIO())
    client.get(printed.getvalue().strip().removeprefix("http://testserver"))
    assert client.session["_auth_user_id"] == str(bob.pk)


@pytest.mark.parametrize("name", ["alice", "Alice@Example.org"])
def test_the_command_finds_a_user_by_name_or_address(client, alice, bob, name):
    printed = StringIO()
    call_command("sign_in_link", name, stdout=printed, stderr=StringIO())
    client.get("/sign-in" + printed.getvalue().strip().split("/sign-in", 1)[1])
    assert client.session["_auth_user_id"] == str(alice.pk)


def test_the_command_says_what_to_do_when_it_finds_nobody(db):
    with pytest.raises(CommandError, match="make run"):
        call_command("sign_in_link")
    with pytest.raises(CommandError, match="No active user is called 'carol'"):
        call_command("sign_in_link", "carol")


def test_the_command_does_not_choose_between_two(db):
    for name in ("one", "two"):
        get_user_model().objects.create_user(name, "shared@example.org")
    with pytest.raises(CommandError, match="Several users"):
        call_command("sign_in_link", "shared@example.org")


def test_the_owner_is_the_first_superuser_else_the_first_user(alice, bob):
    assert find_owner() == alice
    bob.is_superuser = True
    bob.save()
    assert find_owner() == bob


def test_what_one_searches_for_is_not_logged(caplog):
    access = logging.getLogger("uvicorn.access")
    with caplog.at_level(logging.INFO, logger=access.name):
        for path in ("/memory/?q=my+secret&x=1", "/memory/"):
            access.info('%s - "%s %s HTTP/%s" %d', "::1", "GET", path, "1.1", 200)
    assert "/memory/?(hidden)" in caplog.text
    assert "secret" not in caplog.text
    assert '"GET /memory/ HTTP/1.1" 200' in caplog.text

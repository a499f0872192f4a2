"""Signing up: one account a name, and no way around anything."""

from __future__ import annotations

import html
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.utils import IntegrityError
from django.test import Client
from django.urls import reverse

from settings_app.accounts import LONGEST_NAME
from settings_app.forms import NAME_TAKEN
from settings_app.sessions import Session
from tests.settings_app.conftest import GOOD, sign_in, sign_up, signed_in_as


def test_signing_up_makes_an_account_and_signs_in(client, db):
    assert "Make an account" in client.get(reverse("sign_up")).text
    response = sign_up(client)
    carol = get_user_model().objects.get(username="carol")
    assert response.status_code == 302
    assert signed_in_as(client) == str(carol.pk)
    assert not carol.is_staff
    assert not carol.is_superuser
    assert carol.check_password(GOOD)
    assert client.get(response.url, follow=True).status_code == 200


def test_the_page_asked_for_comes_after_signing_up(client, db):
    asked = client.get("/memory/?q=salt").url
    address = re.search(r'href="(/sign-up/[^"]*)"', client.get(asked).text)[1]
    page = client.get(html.unescape(address)).text
    where = html.unescape(re.search('name="next" value="([^"]*)"', page)[1])
    assert sign_up(client, next=where).url == "/memory/?q=salt"
    assert client.get(html.unescape(address)).url == "/memory/?q=salt"


@pytest.mark.parametrize(
    "where",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "javascript:alert(1)",
        "/sign-up/?next=x",
    ],
)
def test_signing_up_leads_to_no_other_site_and_not_in_circles(client, db, where):
    page = client.get(reverse("sign_up"), {"next": where})
    assert 'name="next" value=""' in page.text
    assert sign_up(client, next=where).url == reverse("chat")
    assert client.get(reverse("sign_up"), {"next": where}).url == reverse("chat")


def test_signing_up_gives_a_new_session(client, db):
    client.get(reverse("sign_in"))
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    client.cookies["sessionid"] = before = session.session_key
    sign_up(client)
    assert client.session.session_key != before
    assert not Session.objects.filter(pk=before).exists()


def test_where_signing_up_is_switched_off_there_is_nothing(client, db, settings):
    assert reverse("sign_up") in client.get(reverse("sign_in")).text
    settings.SIGN_UP = False
    assert reverse("sign_up") not in client.get(reverse("sign_in")).text
    assert client.get(reverse("sign_up")).status_code == 404
    assert sign_up(client).status_code == 404
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"password": "short7!", "again": "short7!"}, "at least 8 characters"),
        ({"password": "password", "again": "password"}, "too common"),
        ({"again": "something else"}, "The two passwords are not the same."),
        ({"password": "", "again": ""}, "This field is required."),
        ({"username": ""}, "This field is required."),
        ({"username": "two words"}, "another sign in this name"),
        ({"username": "🗝️"}, "another sign in this name"),
        ({"username": "<b>carol</b>"}, "another sign in this name"),
        ({"username": "carol\u202egpj"}, "another sign in this name"),
        ({"username": "c" * (LONGEST_NAME + 1)}, "This name is too long"),
        # One character that is eighteen once normalised.
        ({"username": "\ufdfa" * 20}, "another sign in this name"),
        ({"username": "c" * 100_000}, "This name is too long"),
        ({"username": "ca\x00rol"}, "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_has_its_error_at_its_field_and_nobody_is_made(client, db, given, sentence):
    response = sign_up(client, **given)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'aria-invalid="true"' in response.text
    assert GOOD not in response.text
    assert "<b>" not in response.text
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize("name", ["Zoë", "李雷", "o.k+1@home", "c" * LONGEST_NAME])
def test_names_of_many_kinds_are_welcome(client, db, name):
    assert sign_up(client, username=name).status_code == 302
    assert get_user_model().objects.get().username == name


# The last two look alike, and are after normalising: full-width letters, and an "ß".
@pytest.mark.parametrize(
    ("taken", "name"),
    [("carol", "Carol"), ("Émile", "émile"), ("carol", "ｃａｒｏｌ"), ("strasse", "Straße")],
)
def test_two_names_that_read_the_same_are_one(client, db, taken, name):
    get_user_model().objects.create_user(taken, password="of the first one")
    response = sign_up(client, username=name)
    assert response.status_code == 400
    assert NAME_TAKEN in response.text
    assert signed_in_as(client) is None
    assert get_user_model().objects.count() == 1


def outcome_of(name):
    try:
        return sign_up(Client(), username=name, password=f"{GOOD} {name}", again=f"{GOOD} {name}")
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_gets_the_name():
    names = ["carol", "Carol", "CAROL", "cARol"]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(outcome_of, names))
    assert sorted(answer.status_code for answer in answers) == [302, 400, 400, 400]
    assert get_user_model().objects.count() == 1


def test_the_database_itself_refuses_a_second_spelling(alice):
    with pytest.raises(IntegrityError, match="user_name_folded"):
        get_user_model().objects.create_user("ALICE")


def test_a_form_sent_twice_ends_signed_in_as_well(db):
    """The second of a double click does not yet know the session that the first one began."""
    sign_up(Client())
    second = Client()
    assert sign_up(second).status_code == 302
    assert signed_in_as(second) == str(get_user_model().objects.get().pk)


def test_signing_up_is_no_way_into_an_account_that_was_closed(client, alice):
    get_user_model().objects.filter(pk=alice.pk).update(is_active=False)
    right = {"username": "alice", "password": "alice-password", "again": "alice-password"}
    assert sign_up(client, **right).status_code == 400
    assert signed_in_as(client) is None


def test_signing_up_is_no_way_around_the_limit_of_guesses(client, alice):
    for number in range(10):
        guess = f"wrong guess {number}"
        response = sign_up(client, username="alice", password=guess, again=guess)
        assert response.status_code == 400
    right = {"username": "alice", "password": "alice-password", "again": "alice-password"}
    response = sign_up(client, **right)
    assert response.status_code == 429
    assert "There were 10 wrong attempts." in response.text
    assert sign_in(client, "alice", "alice-password").status_code == 429
    assert signed_in_as(client) is None


def test_who_is_signed_in_makes_no_second_account(alices, alice):
    assert alices.get(reverse("sign_up")).status_code == 302
    assert sign_up(alices).status_code == 302
    assert signed_in_as(alices) == str(alice.pk)
    assert get_user_model().objects.count() == 1

"""The code after the password: switching it on and off, signing in with it, recovery codes."""

from __future__ import annotations

import base64
import re
import time
from io import StringIO

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from settings_app import second_step
from settings_app.accounts import one_time_link
from settings_app.models import SecondStep
from settings_app.second_step import STEP_S
from settings_app.security_views import PATIENCE_S, WRONG_CODE
from settings_app.sessions import Session
from settings_app.throttling import MOST_CODES
from tests.settings_app.conftest import GOOD, sign_in, sign_up, signed_in_as

PAGE, CODE = reverse("second_step"), reverse("sign_in_code")
PASSWORD = "alice-password"


def app_code(user, steps=0):
    """What the app on the phone shows, so many steps from now."""
    secret = base64.b32decode(SecondStep.objects.get(owner=user).secret)
    app = TOTP(secret, 6, SHA1(), STEP_S)  # noqa: S303 - as apps have it.
    return app.generate(int(time.time()) + steps * STEP_S).decode()


def next_code(user):
    """A right one, though one was used just now."""
    SecondStep.objects.filter(owner=user).update(last_step=0)
    return app_code(user)


@pytest.fixture
def codes(alice):
    """Alice has it on; her recovery codes."""
    second_step.begin(alice)
    codes = second_step.confirm(alice, app_code(alice))
    SecondStep.objects.update(last_step=0)
    return codes


@pytest.fixture
def asked(client, alice, codes):
    """Alice has given her password."""
    answer = sign_in(client, "alice", PASSWORD)
    assert answer.url == CODE
    assert signed_in_as(client) is None
    return client


def give(client, code):
    return client.post(CODE, {"code": code})


# On and off.


def test_it_is_set_up_with_an_app(alices, alice):
    elsewhere = Client()
    elsewhere.force_login(alice)
    assert "Set it up" in alices.get(PAGE).text
    alices.post(PAGE, {"do": "begin"})
    page = alices.get(PAGE)
    assert "no-store" in page["Cache-Control"]
    assert SecondStep.objects.get().secret in page.text
    assert "<svg" in page.text
    assert "style=" not in page.text
    assert not second_step.is_on(alice)
    wrong = alices.post(PAGE, {"do": "confirm", "code": "000000"})
    assert (wrong.status_code, second_step.is_on(alice)) == (400, False)
    assert WRONG_CODE in wrong.text
    done = alices.post(PAGE, {"do": "confirm", "code": app_code(alice)})
    shown = re.findall(r"<code>([A-Z2-7-]{19})</code>", done.text)
    assert len(set(shown)) == 10
    assert second_step.is_on(alice)
    assert signed_in_as(alices)
    assert not Session.objects.filter(pk=elsewhere.session.session_key).exists()
    later = alices.get(PAGE).text
    assert "10 recovery codes left" in later
    assert not any(code in later for code in shown)
    assert SecondStep.objects.get().secret not in later


def test_the_picture_is_of_what_an_app_reads(alice):
    second_step.begin(alice)
    step = second_step.of_user(alice)
    assert step.address.startswith("otpauth://totp/Loci:alice?")
    assert f"secret={step.secret}" in step.address


def test_one_that_was_begun_can_be_cancelled_but_not_so_one_that_is_on(alices, alice):
    alices.post(PAGE, {"do": "begin"})
    alices.post(PAGE, {"do": "cancel"})
    assert not SecondStep.objects.exists()
    second_step.begin(alice)
    second_step.confirm(alice, app_code(alice))
    before = SecondStep.objects.get().secret
    alices.post(PAGE, {"do": "cancel"})
    alices.post(PAGE, {"do": "begin"})
    assert SecondStep.objects.get().secret == before
    assert second_step.is_on(alice)
    assert not second_step.confirm(alice, next_code(alice))


def test_it_is_switched_off_with_a_code_alone(alices, alice, codes):
    for wrong in ("", "123456", "AAAA-AAAA-AAAA-AAAA"):
        assert alices.post(PAGE, {"do": "end", "code": wrong}).status_code == 400
        assert second_step.is_on(alice)
    elsewhere = Client()
    elsewhere.force_login(alice)
    assert alices.post(PAGE, {"do": "end", "code": codes[0]}).status_code == 302
    assert not SecondStep.objects.exists()
    assert not Session.objects.filter(pk=elsewhere.session.session_key).exists()


def test_new_recovery_codes_replace_the_others(alices, alice, codes):
    page = alices.post(PAGE, {"do": "renew", "code": app_code(alice)}).text
    assert "Those you had before work no more." in page
    new = re.findall(r"<code>([A-Z2-7-]{19})</code>", page)
    assert len(new) == 10
    assert not second_step.take(alice, codes[0])
    assert second_step.take(alice, new[0])


def test_without_a_password_there_is_none(client, db):
    owner = get_user_model().objects.create_superuser("owner")
    client.force_login(owner)
    assert "Second step" not in client.get(reverse("account")).text
    assert client.get(PAGE).url == reverse("account")
    client.post(PAGE, {"do": "begin"})
    assert not SecondStep.objects.exists()


def test_the_database_holds_neither_secret_nor_codes(alice, codes):
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(row)::text FROM settings_app_secondstep row")
        ((stored,),) = cursor.fetchall()
    assert SecondStep.objects.get().secret not in stored
    assert not any(code in stored or code.replace("-", "") in stored for code in codes)


# Signing in.


def test_the_password_alone_signs_nobody_in(asked, alice):
    assert asked.get(reverse("account")).status_code == 302
    assert asked.get(CODE).status_code == 200
    assert give(asked, app_code(alice)).status_code == 302
    assert signed_in_as(asked) == str(alice.pk)
    assert "second_step" not in asked.session


def test_one_goes_on_to_where_one_was_going(client, alice, codes):
    where = reverse("memory")
    client.post(f"{reverse('sign_in')}?next={where}", {"username": "alice", "password": PASSWORD})
    assert give(client, app_code(alice)).url == where


@pytest.mark.parametrize("steps", [-1, 1])
def test_the_phones_clock_may_be_off_a_little(asked, alice, steps):
    give(asked, app_code(alice, steps))
    assert signed_in_as(asked)


@pytest.mark.parametrize("steps", [-3, 3])
def test_an_old_code_and_one_of_the_future_do_not_work(asked, alice, steps):
    assert WRONG_CODE in give(asked, app_code(alice, steps)).text
    assert signed_in_as(asked) is None


def test_a_code_works_once(alice, codes):
    code = app_code(alice)
    assert second_step.take(alice, f" {code[:3]} {code[3:]} ")
    assert not second_step.take(alice, code)


def test_codes_work_after_the_servers_clock_was_ahead(alice, codes):
    ahead = int(time.time()) // STEP_S + 1000
    SecondStep.objects.update(last_step=ahead)
    code = app_code(alice)
    assert second_step.take(alice, code)
    assert not second_step.take(alice, code)


def test_a_recovery_code_works_once_however_it_is_written(asked, alice, codes):
    give(asked, codes[0].lower().replace("-", " "))
    assert signed_in_as(asked)
    assert not second_step.take(alice, codes[0])
    assert len(SecondStep.objects.get().recovery_digests) == 9


def test_codes_cannot_be_guessed(client, alice, asked):
    for _ in range(MOST_CODES):
        assert give(asked, "000000").status_code == 400
    for browser in (asked, Client()):
        sign_in(browser, "alice", PASSWORD)
        refused = give(browser, app_code(alice))
        assert (refused.status_code, "Retry-After" in refused) == (429, True)
        assert signed_in_as(browser) is None


def test_the_right_code_forgets_the_wrong_ones(asked, alice):
    for _ in range(MOST_CODES - 1):
        give(asked, "000000")
    give(asked, app_code(alice))
    assert signed_in_as(asked)
    again = Client()
    sign_in(again, "alice", PASSWORD)
    assert give(again, "000000").status_code == 400


def test_a_right_password_waits_for_its_code_for_some_minutes_and_until_it_changes(asked, alice):
    session = asked.session
    session["second_step"] = [*session["second_step"][:2], int(time.time()) - PATIENCE_S - 1, "/"]
    session.save()
    assert give(asked, app_code(alice)).url == reverse("sign_in")
    sign_in(asked, "alice", PASSWORD)
    alice.set_password(GOOD)
    alice.save()
    assert give(asked, app_code(alice)).url == reverse("sign_in")
    assert signed_in_as(asked) is None


def test_nobody_is_asked_for_a_code_who_gave_no_password(client, alice, codes):
    assert client.get(CODE).url == reverse("sign_in")
    assert give(client, app_code(alice)).url == reverse("sign_in")


def test_no_other_way_in_leaves_it_out(alice, codes, settings):
    """A one-time link, the form for a new account, the admin site's sign-in."""
    settings.SIGN_UP = True
    by_link, by_form, by_admin = Client(), Client(), Client()
    assert by_link.get(one_time_link(alice)).url == CODE
    assert sign_up(by_form, username="alice", password=PASSWORD, again=PASSWORD).url == CODE
    given = {"username": "alice", "password": PASSWORD}
    by_admin.post(reverse("admin:login"), given, follow=True)
    for browser in (by_link, by_form, by_admin):
        assert signed_in_as(browser) is None
    give(by_link, app_code(alice))
    assert signed_in_as(by_link) == str(alice.pk)


def test_the_operator_can_switch_it_off(client, alice, codes):
    printed = StringIO()
    call_command("sign_in_link", "alice", "--end-second-step", stdout=printed, stderr=StringIO())
    client.get("/sign-in" + printed.getvalue().strip().split("/sign-in", 1)[1])
    assert signed_in_as(client) == str(alice.pk)


def test_one_persons_code_opens_nothing_of_another(client, alice, bob, codes):
    second_step.begin(bob)
    second_step.confirm(bob, app_code(bob))
    sign_in(client, "alice", PASSWORD)
    assert WRONG_CODE in give(client, next_code(bob)).text
    assert signed_in_as(client) is None


def test_it_goes_with_the_account(alice, codes):
    alice.delete()
    assert not SecondStep.objects.exists()

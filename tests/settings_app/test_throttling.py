"""Ten guesses for a name from one place, then a quarter of an hour's rest; and other limits."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse

from settings_app import throttling
from settings_app.accounts import one_time_link
from settings_app.api_keys import issue
from settings_app.throttling import (
    MOST_ATTEMPTS,
    MOST_FOR_NAME,
    MOST_FROM_PLACE,
    MOST_SIGN_UPS,
    REST,
    TooManyAttempts,
    cost_of,
    place_of,
)
from tests.settings_app.conftest import sign_up

RIGHT = "alice-password"


def guess(client, password, name="alice", **headers):
    sent = {"username": name, "password": password}
    return client.post(reverse("sign_in"), sent, **headers)


def wear_out(client, name="alice", **headers):
    for number in range(MOST_ATTEMPTS):
        assert guess(client, f"guess {number}", name, **headers).status_code == 200


def test_after_ten_wrong_guesses_the_right_one_is_not_answered_either(client, alice):
    wear_out(client)
    response = guess(client, RIGHT)
    assert response.status_code == 429
    assert "There were 10 wrong attempts. Wait 15 minutes, then try again." in response.text
    assert response.headers["Retry-After"] == "900"
    assert 'name="password"' in response.text
    assert RIGHT not in response.text
    assert "_auth_user_id" not in client.session


def test_the_right_password_resets_the_counter(client, alice):
    for _ in range(3):
        for number in range(MOST_ATTEMPTS - 1):
            guess(client, f"guess {number}")
        assert guess(client, RIGHT).status_code == 302
        client.logout()


def test_a_name_that_nobody_has_is_counted_the_same_way(client, db):
    wear_out(client, name="nobody")
    assert guess(client, RIGHT, name="nobody").status_code == 429


def test_capitals_and_wide_letters_give_no_further_guesses(client, alice):
    wear_out(client)
    for name in ("ALICE", "Alice", "ａｌｉｃｅ", " alice "):
        assert guess(client, RIGHT, name=name).status_code == 429


def test_others_are_not_kept_out(client, alice, bob):
    wear_out(client)
    assert guess(client, "bob-password", name="bob").status_code == 302
    elsewhere = Client(REMOTE_ADDR="203.0.113.9")
    assert guess(elsewhere, RIGHT).status_code == 302


def test_one_who_is_kept_out_still_comes_in_by_a_link_and_frees_no_guesses(client, alice):
    wear_out(client)
    assert client.get(one_time_link(alice)).status_code == 302
    assert client.session["_auth_user_id"] == str(alice.pk)
    assert guess(Client(), RIGHT).status_code == 429


def test_a_link_needs_no_guesses_and_costs_none(client, alice):
    for _ in range(MOST_ATTEMPTS + 2):
        client.get(one_time_link(alice))
    client.logout()
    assert guess(client, RIGHT).status_code == 302


def test_half_filled_forms_are_no_guesses(client, alice):
    for _ in range(MOST_ATTEMPTS + 2):
        guess(client, "")
        guess(client, RIGHT, name="")
    assert guess(client, RIGHT).status_code == 302


def outcome_of(number):
    try:
        return guess(Client(), f"guess {number}").status_code
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_many_guesses_at_once_only_ten_are_answered(alice):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(outcome_of, range(40)))
    assert answers.count(200) == MOST_ATTEMPTS
    assert answers.count(429) == 40 - MOST_ATTEMPTS


def test_a_rest_ends_and_those_refused_meanwhile_do_not_lengthen_it(rf, counters):
    request = rf.post("/")
    for _ in range(MOST_ATTEMPTS):
        throttling.count_attempt(request, "alice")
    key = throttling._key(request, "alice")
    assert 0 < counters.ttl(cache.make_key(key)) <= REST.total_seconds()
    cache.touch(key, 100)
    with pytest.raises(TooManyAttempts):
        throttling.count_attempt(request, "alice")
    assert counters.ttl(cache.make_key(key)) <= 100
    cache.delete(key)  # As when the time has run out.
    throttling.count_attempt(request, "alice")


def test_what_is_kept_names_nobody(rf):
    request = rf.post("/", REMOTE_ADDR="203.0.113.9")
    throttling.count_attempt(request, "alice")
    key = throttling._key(request, "alice")
    assert cache.get(key) == 1
    assert "alice" not in key
    assert "203" not in key


def test_rest_is_a_quarter_of_an_hour():
    assert timedelta(minutes=15) == REST


PROXY = ("HTTP_X_FORWARDED_PROTO", "https")


@pytest.mark.parametrize(
    ("proxy", "peer", "said", "place"),
    [
        # Without a proxy the header is anybody's to write.
        (None, "203.0.113.9", "198.51.100.1", "203.0.113.9"),
        (PROXY, "10.0.0.2", "198.51.100.1", "198.51.100.1"),
        # The last entry is the proxy's own; those before it were sent along.
        (PROXY, "10.0.0.2", "192.0.2.1, 198.51.100.1", "198.51.100.1"),
        (PROXY, "10.0.0.2", "", "10.0.0.2"),
        (PROXY, "10.0.0.2", "nonsense", "10.0.0.2"),
        (PROXY, "10.0.0.2", "198.51.100.1:4711", "198.51.100.1"),
        (PROXY, "10.0.0.2", "[2001:db8::7]:4711", "2001:db8::/64"),
        (None, "2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::/64"),
        (None, "::ffff:203.0.113.9", "", "203.0.113.9"),
        (None, "", "", ""),
    ],
)
def test_where_a_guess_comes_from(settings, proxy, peer, said, place):
    settings.SECURE_PROXY_SSL_HEADER = proxy
    headers = {"X-Forwarded-For": said} if said else {}
    request = RequestFactory().post("/", REMOTE_ADDR=peer, headers=headers)
    assert place_of(request) == place


def test_a_header_sent_along_gives_no_further_guesses(alice):
    for number in range(MOST_ATTEMPTS):
        guess(Client(), f"guess {number}", headers={"X-Forwarded-For": f"198.51.100.{number}"})
    last = guess(Client(), RIGHT, headers={"X-Forwarded-For": "198.51.100.99"})
    assert last.status_code == 429


def test_the_log_reports_a_pause_without_name_or_password(client, alice, caplog):
    with caplog.at_level(logging.DEBUG):
        wear_out(client)
        for _ in range(3):
            guess(client, RIGHT)
    said = [record.getMessage() for record in caplog.records if "sign-ins" in record.getMessage()]
    assert said == ["No more sign-ins for a name from 127.0.0.1 for a while."]
    assert "alice" not in caplog.text
    assert RIGHT not in caplog.text
    assert "guess 3" not in caplog.text


def test_many_names_from_one_address_are_refused(client, alice, bob):
    for number in range(MOST_FROM_PLACE):
        assert guess(client, "letmein", f"name{number}").status_code == 200
    refused = guess(client, "bob-password", name="bob")
    assert refused.status_code == 429
    assert f"There were {MOST_FROM_PLACE} wrong attempts." in refused.text
    assert guess(Client(REMOTE_ADDR="203.0.113.9"), "bob-password", name="bob").status_code == 302


def from_everywhere(name, number):
    client = Client(REMOTE_ADDR=f"203.0.113.{number}")
    return guess(client, "letmein", name).status_code


def test_one_name_from_many_addresses_is_refused(alice):
    answers = [from_everywhere("alice", number) for number in range(MOST_FOR_NAME)]
    assert answers == [200] * MOST_FOR_NAME
    assert from_everywhere("ALICE", 200) == 429
    assert guess(Client(REMOTE_ADDR="198.51.100.1"), RIGHT).status_code == 429


def test_guesses_elsewhere_do_not_keep_the_owner_out_of_a_familiar_address(client, alice):
    assert guess(client, RIGHT).status_code == 302
    for number in range(MOST_FOR_NAME + 1):
        from_everywhere("alice", number)
    assert guess(Client(), RIGHT).status_code == 302
    assert guess(Client(REMOTE_ADDR="198.51.100.1"), RIGHT).status_code == 429


def test_right_passwords_do_not_use_up_an_address_nor_reset_it(client, alice, bob):
    for _ in range(MOST_FROM_PLACE + 2):
        assert guess(Client(), RIGHT).status_code == 302
    for number in range(MOST_FROM_PLACE):
        assert guess(client, "letmein", f"name{number}").status_code == 200
        if number == MOST_FROM_PLACE - 2:
            assert guess(Client(), RIGHT).status_code == 302
    assert guess(client, "bob-password", name="bob").status_code == 429


def test_forms_to_sign_up_are_limited_by_address(client, db, settings):
    settings.SIGN_UP = True
    for number in range(MOST_SIGN_UPS):
        assert sign_up(Client(), username=f"carol{number}", again="typo").status_code == 400
    refused = sign_up(client)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "3600"
    assert f"There were {MOST_SIGN_UPS} attempts to make an account." in refused.text
    elsewhere = Client(REMOTE_ADDR="203.0.113.9")
    assert sign_up(elsewhere).status_code == 302


@pytest.mark.parametrize(
    ("asked", "cost"),
    [
        ({}, 1),
        ({"size": 1000, "tokens": 1024, "results": 100}, 1),
        ({"size": 8 << 20}, 33),
        ({"tokens": 32_000, "results": 200}, 10),
    ],
)
def test_what_asks_for_much_counts_as_several(asked, cost):
    assert cost_of(**asked) == cost


@pytest.fixture
def key(alice):
    return issue(alice, "a program")[0]


def test_each_of_several_windows_is_kept(key, settings):
    settings.API_RATE = "2/second;3/day"
    assert throttling.count_request(key, 2).remaining == 0
    assert not throttling.count_request(key).allowed
    settings.API_RATE = "9/second;3/day"
    assert throttling.count_request(key).remaining == 0
    refused = throttling.count_request(key)
    assert not refused.allowed
    assert refused.limit == 3


def test_what_costs_more_than_a_window_can_still_be_sent(key, settings):
    settings.API_RATE = "5/day"
    assert throttling.count_request(key, 33).allowed
    assert not throttling.count_request(key).allowed


def test_while_redis_is_away_each_process_counts_by_itself(key, settings, tmp_path):
    settings.API_RATE = "2/day"
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    throttling._storage.cache_clear()
    try:
        assert throttling.count_request(key).allowed
        assert throttling.count_request(key).allowed
        assert not throttling.count_request(key).allowed
    finally:
        throttling._storage.cache_clear()

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client

from api.rest import base
from config.middleware import BROKEN
from llm import request_admission
from tests.api.rest.conftest import client_of

PROBLEM = "application/problem+json"
UNKNOWN = "/v1/no-such-thing/"


@pytest.fixture
def visitor():
    """Is shown what went wrong, as a browser is."""
    return Client(raise_request_exception=False)


@pytest.fixture
def postgres_away():
    """A server that cannot be reached, from when it is called on."""
    before = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}

    def go_away():
        connection.close()
        connection.settings_dict.update(HOST="127.0.0.1", PORT="1")

    yield go_away
    connection.settings_dict.update(before)


@pytest.mark.django_db(transaction=True)
def test_while_postgres_is_away_people_and_programs_are_asked_to_come_again(
    visitor, alice, postgres_away
):
    program = client_of(alice)
    visitor.force_login(alice)
    postgres_away()
    page = visitor.get("/memory/", headers={"Accept": "text/html"})
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert "The database does not respond. Try again in a moment." in page.text
    asked = visitor.get("/memory/", headers={"Accept": "application/json"})
    for answer in (asked, program.get("/v1/webhooks/")):
        assert (answer.status_code, answer["Content-Type"]) == (503, PROBLEM)
        assert (answer["Retry-After"], answer.json()["code"]) == ("5", "database_unavailable")


def test_past_the_most_that_may_wait_people_and_programs_are_asked_to_come_again(
    visitor, alice, monkeypatch, caplog
):
    program = client_of(alice)
    visitor.force_login(alice)
    monkeypatch.setattr(request_admission, "MOST_WAITING", 0)
    caplog.clear()
    page = visitor.get("/memory/", headers={"Accept": "text/html"})
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert "Too many requests wait already." in page.text
    program.raise_request_exception = False
    asked = program.post("/recall", {"query": "When does the ferry leave?"})
    assert (asked.status_code, asked["Content-Type"]) == (503, PROBLEM)
    assert (asked["Retry-After"], asked.json()["code"]) == ("5", "too_busy")
    assert [each for each in caplog.records if each.exc_info] == []
    assert visitor.get("/health/live").status_code == 200
    assert visitor.get("/static/css/base.css").status_code == 200


def test_keys_and_sessions_that_open_something_are_callers_of_their_own(
    visitor, alice, monkeypatch
):
    monkeypatch.setattr(request_admission, "_known", {})
    visitor.get("/sign-in/", headers={"Authorization": "Bearer made-up"})
    visitor.get("/v1/webhooks/", headers={"Authorization": "Bearer made-up"})
    assert request_admission._known == {}
    visitor.force_login(alice)
    visitor.get("/memory/")
    client_of(alice).get("/v1/webhooks/")
    assert len(request_admission._known) == 2


def test_what_was_not_foreseen_is_a_problem_without_a_trace(alice, monkeypatch):
    """Whatever breaks in a view comes out here."""
    monkeypatch.setattr(base, "MOST_KEY_CHARS", None)
    program = client_of(alice)
    program.raise_request_exception = False
    answer = program.post("/v1/webhooks/", {}, headers={"Idempotency-Key": "x"})
    assert (answer.status_code, answer["Content-Type"]) == (500, PROBLEM)
    assert answer.json()["detail"] == BROKEN


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (UNKNOWN, {}),
        ("/api/no-such-thing/", {}),
        ("/no-such-thing", {"Accept": "application/json"}),
        ("/no-such-thing", {"Authorization": "Bearer loci_x"}),
    ],
    ids=str,
)
def test_programs_read_in_json_what_is_not_there(db, client, path, headers):
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer["Content-Type"]) == (404, PROBLEM)
    assert answer.json()["code"] == "not_found"


def test_people_are_shown_a_page(db, client):
    answer = client.get("/no-such-thing/", headers={"Accept": "text/html,application/json"})
    assert answer.status_code == 404
    assert "There is nothing here" in answer.text


@pytest.mark.parametrize("path", ["/v1/webhooks", "/v1/webhooks/", "/recall", "/recall/"])
def test_what_is_posted_gets_there_with_the_slash_or_without(alice, path):
    answer = client_of(alice).post(path, {})
    assert answer.status_code == 400
    assert answer.json()["errors"]


def test_a_page_has_one_address(db, client):
    answer = client.get("/memory", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (301, "/memory/")


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
@pytest.mark.parametrize("path", ["/recall", "/memory/"])
def test_a_host_that_is_not_ours_is_refused(client, path, accept):
    answer = client.get(path, headers={"Host": "evil.example", "Accept": accept})
    assert answer.status_code == 400

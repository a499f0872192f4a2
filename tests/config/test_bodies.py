"""What is larger than its door takes is refused at once, and nothing of it stays on the disk."""

from __future__ import annotations

import http.client
import json
import operator
import socket
import tempfile
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from api.rest import parsing
from config.body_limits import MOST_OF_STRANGERS
from settings_app.api_keys import issue
from settings_app.sessions import Session
from tests.asgi_server import AsgiServer
from tests.config.test_uploads import written_in
from tests.polling import until

pytestmark = pytest.mark.django_db(transaction=True)

MB = 1 << 20
OUR_CODE = operator.itemgetter("code")
PAGE = {"Accept": "text/html"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(transactional_db):
    with AsgiServer() as server:
        yield server


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """The folder of temporary files, which holds nothing in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    until(lambda: written_in(folder) == 0)
    assert list(folder.iterdir()) == []


def begun(server, path, headers):
    """A POST of which only the head has gone out."""
    address = urlsplit(server.url)
    head = {"Host": address.netloc, **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
    return connection


def answered(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response, response.read().decode()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/turns", OUR_CODE),
        ("/recall/", OUR_CODE),
        ("/v1/memories/", OUR_CODE),
        ("/mcp", OUR_CODE),
        ("/v1/chat/completions", lambda answer: answer["error"]["code"]),
        ("/v1/no-such-thing/", OUR_CODE),
    ],
)
def test_programs_are_refused_by_the_declared_length_before_any_body(server, temporary, path, code):
    with begun(server, path, {**JSON, "Content-Length": 400 * MB}) as connection:
        response, text = answered(connection)
    assert response.status == 413
    assert code(json.loads(text)) == "too_large"


@pytest.mark.parametrize("path", ["/sign-in/", "/no-such-page/", "/memory/"])
def test_people_are_shown_a_page(server, temporary, path):
    with begun(server, path, {**PAGE, "Content-Length": 400 * MB}) as connection:
        response, text = answered(connection)
    assert response.status == 413
    assert "This is too much at once" in text
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]


@pytest.fixture
def key(alice):
    _, secret = issue(alice, "a program")
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("path", ["/turns", "/v1/memories/"])
def test_what_declares_no_length_is_cut_off_at_the_limit_and_not_kept(server, temporary, key, path):
    headers = {**JSON, **key, "Transfer-Encoding": "chunked"}
    with begun(server, path, headers) as connection:
        for _ in range(parsing.MOST_BYTES // MB):
            send_chunk(connection)
        assert written_in(temporary) <= parsing.MOST_BYTES
        send_chunk(connection)
        response, text = answered(connection)
        until(lambda: written_in(temporary) == 0)
    assert (response.status, json.loads(text)["code"]) == (413, "too_large")


def test_who_sends_without_reading_gets_the_answer_in_the_end(server, temporary):
    with begun(server, "/turns", {**JSON, "Content-Length": 40 * MB}) as connection:
        for _ in range(40):
            connection.sendall(b"x" * MB)
        assert answered(connection)[0].status == 413
    assert written_in(temporary) == 0


def send_chunk(connection):
    connection.sendall(b"%x\r\n" % MB + b"x" * MB + b"\r\n")


def test_what_its_door_takes_gets_there(server, temporary, key):
    body = json.dumps({"text": "x" * 7 * MB}).encode()
    with begun(server, "/turns", {**JSON, **key, "Content-Length": len(body)}) as connection:
        connection.sendall(body)
        response, text = answered(connection)
    assert (response.status, json.loads(text)["code"]) == (400, "unknown_field")


STRANGERS = {
    "nobody": ({}, "not_authenticated"),
    "a forged key": ({"Authorization": "Bearer loci_forged"}, "bad_key"),
    "a forged key of mem0's client": ({"Authorization": "Token loci_forged"}, "bad_key"),
}
PROGRAMS = {
    "/turns": OUR_CODE,
    "/v1/memories/": OUR_CODE,
    "/v1/chat/completions": lambda answer: answer["error"]["code"],
}


@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("who", STRANGERS)
def test_nothing_large_is_read_of_a_stranger(server, temporary, path, who):
    headers, code = STRANGERS[who]
    with begun(server, path, {**JSON, **headers, "Content-Length": 2 * MB}) as connection:
        response, text = answered(connection)
    assert (response.status, PROGRAMS[path](json.loads(text))) == (401, code)


@pytest.mark.parametrize("path", PROGRAMS)
def test_what_a_stranger_sends_without_a_length_is_cut_off_early(server, temporary, path):
    with begun(server, path, {**JSON, "Transfer-Encoding": "chunked"}) as connection:
        send_chunk(connection)
        assert written_in(temporary) <= MOST_OF_STRANGERS
        send_chunk(connection)
        response, text = answered(connection)
    assert (response.status, PROGRAMS[path](json.loads(text))) == (401, "not_authenticated")


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def somebody_else(alice):
    return "a" * 32


def whose_session_has_ended(alice):
    key = signed_in(alice)
    Session.objects.all().delete()
    return key


def whose_account_was_closed(alice):
    key = signed_in(alice)
    get_user_model().objects.update(is_active=False)
    return key


def whose_password_was_changed(alice):
    key = signed_in(alice)
    alice.set_password("another-password")
    alice.save()
    return key


@pytest.mark.parametrize(
    "who",
    [
        somebody_else,
        whose_session_has_ended,
        whose_account_was_closed,
        whose_password_was_changed,
    ],
)
@pytest.mark.parametrize("length", ["Content-Length", "Transfer-Encoding"])
def test_a_file_of_nobody_who_is_signed_in_is_not_taken_in(server, temporary, alice, who, length):
    headers = {**PAGE, "Cookie": f"sessionid={who(alice)}"}
    headers[length] = 400 * MB if length == "Content-Length" else "chunked"
    with begun(server, reverse("imports"), headers) as connection:
        if length == "Transfer-Encoding":
            send_chunk(connection)
        response, text = answered(connection)
    assert response.status == 413
    assert "Sign in first" in text


def test_a_file_of_somebody_signed_in_is_taken_in(server, temporary, alice):
    headers = {**PAGE, "Cookie": f"sessionid={signed_in(alice)}", "Content-Length": 400 * MB}
    with begun(server, reverse("imports"), headers) as connection:
        for _ in range(12):
            connection.sendall(b"x" * MB)
        until(lambda: written_in(temporary) > 10 * MB)


def test_a_file_that_comes_while_the_database_is_away_may_come_later(
    server, temporary, monkeypatch
):
    def is_signed_in(_scope):
        raise OperationalError("connection refused")

    monkeypatch.setattr("config.body_limits.is_signed_in", is_signed_in)
    with begun(server, reverse("imports"), {**PAGE, "Content-Length": 400 * MB}) as connection:
        response, text = answered(connection)
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]
    assert "The database does not respond" in text

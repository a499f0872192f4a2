"""What a key opens, and what is said where it does not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from settings_app.api_keys import ApiKey, issue
from settings_app.models import AuditLine
from tests.api.rest.conftest import client_of

ASKED = {"query": "where?"}


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic bG9jaTo=", "Bearer loci_nonsense"])
def test_without_a_known_key_nothing_is_revealed(db, header):
    client = APIClient()
    if header is not None:
        client.credentials(HTTP_AUTHORIZATION=header)
    response = client.post("/recall", ASKED)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.data["code"] in ("not_authenticated", "bad_key")
    assert "/settings/keys/" in response.data["detail"]


def test_a_key_is_not_stored(owner):
    key, text = issue(owner, "a program")
    row = ApiKey.objects.values().get(pk=key.pk)
    assert text not in str(row)
    assert row["start"] == text[: len(row["start"])]


@pytest.mark.parametrize("ending", ["revoked", "expired", "left"])
def test_a_key_that_has_ended_opens_nothing(owner, ending):
    key, text = issue(owner, "a program")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert client.post("/recall", ASKED).status_code == 200
    if ending == "revoked":
        key.revoke()
    elif ending == "expired":
        ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        type(owner).objects.filter(pk=owner.pk).update(is_active=False)
    assert client.post("/recall", ASKED).status_code == 401


@pytest.mark.parametrize(
    ("scope", "statuses"),
    [("read", (200, 403, 403)), ("write", (403, 400, 403)), ("admin", (403, 403, 204))],
)
def test_each_scope_is_for_its_own(owner, scope, statuses):
    client = client_of(owner, scopes=[scope])
    answers = [
        client.post("/recall", ASKED),
        client.post("/turns", {}),
        client.delete("/users/nobody"),
    ]
    assert tuple(each.status_code for each in answers) == statuses
    for refused in (each for each in answers if each.status_code == 403):
        assert refused.data["code"] == "missing_scope"


def test_a_key_for_one_palace_opens_no_other(owner):
    client = client_of(owner, subject="ada")
    for user in ("bob", "somebody nobody knows"):
        assert client.post("/recall", {**ASKED, "user_id": user}).data["code"] == "wrong_palace"
    assert client.get("/users/bob/memories").status_code == 403
    assert client.post("/recall", {**ASKED, "user_id": "ada"}).status_code == 200
    assert client.post("/recall", ASKED).status_code == 200


def test_requests_are_counted(owner, settings):
    settings.API_RATE = "2/hour"
    client = client_of(owner)
    assert client.post("/recall", ASKED).headers["RateLimit-Remaining"] == "1"
    assert client.post("/recall", ASKED).headers["RateLimit-Remaining"] == "0"
    refused = client.post("/recall", ASKED)
    assert refused.status_code == 429
    assert refused.data["code"] == "too_many_requests"
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert client_of(owner).post("/recall", ASKED).status_code == 200, "Each key has its own count."


def test_a_large_recall_counts_as_several(owner, settings):
    settings.API_RATE = "20/hour"
    client = client_of(owner)
    large = {**ASKED, "max_tokens": 32_000, "top_k": 200}
    assert client.post("/recall", large).headers["RateLimit-Remaining"] == "10"
    assert client.post("/recall", ASKED).headers["RateLimit-Remaining"] == "9"
    assert client.post("/recall", large).status_code == 429
    assert client.post("/recall", ASKED).headers["RateLimit-Remaining"] == "8"
    assert client.post("/search", {**ASKED, "limit": 200}).headers["RateLimit-Remaining"] == "6"


@pytest.mark.parametrize(
    ("method", "path", "cost"),
    [
        ("get", "/v1/memories/", 100),
        ("get", "/v1/memories/search/?q=tea", 100),
        ("post", "/v1/memories/search/", 100),
        ("get", "/v1/entities/", 100),
        ("post", "/v1/entities/", 100),
        ("get", "/v1/entities/Ada/relations/", 100),
        ("post", "/episodic/search", 100),
        ("post", "/namespaces/session/a/search", 100),
        ("get", "/users/ada/memories", 100),
        ("post", "/search", 2),
        ("get", "/v1/wings/", 2),
        ("get", "/v1/activity/", 2),
    ],
)
def test_a_long_list_counts_as_several(owner, settings, method, path, cost):
    settings.API_RATE = "1000/hour"
    asked = {"query": "tea", "limit": 10_000 if cost == 100 else 200}
    response = getattr(client_of(owner), method)(path, asked)
    assert response.headers["RateLimit-Remaining"] == str(1000 - cost)


def test_a_list_without_a_limit_counts_for_what_it_may_bring(owner, settings):
    settings.API_RATE = "1000/hour"
    client = client_of(owner)
    assert client.get("/users/ada/memories").headers["RateLimit-Remaining"] == "990"
    assert client.get("/v1/memories/").headers["RateLimit-Remaining"] == "989"
    assert client.delete("/users/ada/memories").headers["RateLimit-Remaining"] == "988"


def test_a_large_body_counts_as_several(owner, settings):
    settings.API_RATE = "20/hour"
    said = {"role": "user", "content": "Good morning. " * 20_000}
    response = client_of(owner).post("/turns", {"session_id": "s", "messages": [said], "x": 1})
    assert response.headers["RateLimit-Remaining"] == "18"


def test_what_cannot_be_read_counts_too(owner, settings):
    settings.API_RATE = "2/hour"
    client = client_of(owner)
    for left in ("1", "0"):
        refused = client.post("/recall", "{", content_type="application/json")
        assert refused.data["code"] == "bad_json"
        assert refused.headers["RateLimit-Remaining"] == left
    assert client.post("/recall", "{", content_type="application/json").status_code == 429


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("post", "/recall", "query"),
        ("post", "/search", "query"),
        ("post", "/v1/memories/search/", "query"),
        ("get", "/v1/memories/search/", "q"),
        ("post", "/namespaces/session/a/search", "query"),
        ("post", "/episodic/search", "query"),
    ],
)
def test_a_question_is_limited(owner, method, path, name):
    asked = {name: "light " * 1000, "user_id": "ada"}
    refused = getattr(client_of(owner), method)(path, asked)
    assert refused.status_code == 400, path
    assert refused.data["code"] == "bad_input"
    assert "4000 characters" in refused.data["detail"]


def test_each_write_leaves_a_line_and_no_word(owner):
    client = client_of(owner)
    client.post("/recall", ASKED)
    client.delete("/sessions/one?user_id=ada")
    client.post("/turns", {"session_id": "a secret"})
    lines = AuditLine.objects.filter(owner=owner).order_by("pk")
    recorded = [(line.door, line.action, line.path, line.status) for line in lines]
    assert recorded == [
        ("rest", "DELETE", "/sessions/one", 204),
        ("rest", "POST", "/turns", 400),
    ]


def test_last_use_is_noted(owner):
    key, text = issue(owner, "a program")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    client.post("/recall", ASKED)
    key.refresh_from_db()
    assert key.last_used_at is not None


def test_a_key_that_only_writes_does_not_read_what_was_known(owner, program):
    ann = {"user_id": "ann"}
    metadata = {"metadata": {"from": "the clinic"}}
    program.post("/v1/memories/", {**ann, **metadata, "messages": "I live in Porto."})
    program.post("/v1/memories/", {**ann, "messages": "My shoe size is 41."})
    writer = client_of(owner, scopes=["write"])

    def recorded(text):
        [event] = writer.post("/v1/memories/", {**ann, "messages": text}).data["results"]
        return event

    same = recorded("I live in Porto.")
    assert (same["event"], same["old_memory"], same["metadata"]) == ("NONE", None, {})
    moved = recorded("I live in Lisbon.")
    assert (moved["event"], moved["old_memory"], moved["new_memory"]) == ("UPDATE", None, None)
    new = recorded("I own a boat.")
    assert (new["event"], new["new_memory"]) == ("ADD", "User owns a boat")
    put = writer.put(f"/v1/memories/{same['id']}/", {"text": "User lives in Faro"})
    assert put.status_code == 200
    assert put.data.keys() == {"id", "memory", "changed", "note"}
    taken = writer.put(f"/v1/memories/{new['id']}/", {"text": "User lives in Rome"})
    assert (taken.status_code, taken.data["code"]) == (409, "fact_conflict")
    assert "Faro" not in taken.data["detail"]
    assert (
        "Faro"
        in program.put(f"/v1/memories/{new['id']}/", {"text": "User lives in Rome"}).data["detail"]
    )


def test_what_one_body_says_is_unknown_to_the_next(owner, program):
    said = {"query": "Bees?", "user_id": "nobody"}
    assert program.post("/recall", {**said, "max_tokens": 0, "as_of": "then"}).status_code == 400
    first, null = program.post("/recall", said), program.post("/recall", None)
    assert first.status_code == 200
    assert null.status_code == 400
    errors = program.post("/recall", {"query": "Bees?", "top_k": 0}).json()["errors"]
    assert list(errors) == ["top_k"]

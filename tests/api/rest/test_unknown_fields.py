"""A name that an endpoint does not know is refused, or it would search or delete too much."""

from __future__ import annotations

import re

import pytest
from drf_spectacular.generators import SchemaGenerator

from api.openai.schema import TAG
from palace.models import Drawer, Palace
from tests.api.rest.conftest import client_of

NO_ID = "00000000-0000-4000-8000-000000000000"
IN_PATHS = {"uuid": NO_ID, "kind": "session"}
SAID = {"session_id": "one", "messages": [{"role": "user", "content": "I keep bees."}]}


def operations():
    """The method and the address of each."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    return [
        (method, re.sub(r"\{(\w+)\}", lambda found: IN_PATHS.get(found[1], "x"), path))
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        # The proxy passes on what it does not know: providers have fields of their own.
        if operation["tags"] != [TAG]
    ]


def test_no_endpoint_ignores_what_it_does_not_know(program, settings):
    settings.API_RATE = ""
    ignoring = []
    sent = operations()
    for method, path in sent:
        call = getattr(program, method)
        responses = [call(f"{path}?wing_idd=1&format=csv")]
        if method != "get":
            responses.append(call(path, {"wing_idd": 1}))
        codes = [response.json().get("code") for response in responses]
        ignoring += [(method, path, code) for code in codes if code != "unknown_field"]
    assert len(sent) > 50
    assert ignoring == []


def test_the_sentence_names_the_field_and_those_that_there_are(program):
    response = program.post("/search", {"query": "bees", "as_off": "2024-01-01"})
    assert response.status_code == 400
    detail = response.json()["detail"]
    assert "as_off" in detail
    assert "as_of, limit, query" in detail
    assert response.json()["errors"] == {"as_off": [detail]}


def test_a_field_in_the_wrong_place_is_named_with_the_right_one(program):
    response = program.post("/recall?user_id=alice", {"query": "bees"})
    assert response.status_code == 400
    assert "in the body, not in the query string" in response.json()["detail"]


@pytest.mark.parametrize("sent", ["/v1/reset/?user_id=alice", "/v1/reset/"])
def test_a_reset_meant_for_one_user_deletes_nothing(program, sent):
    program.post("/v1/memories/", {"user_id": "bob", "messages": "I live in Porto."})
    response = program.post(sent, None if "?" in sent else {"user_id": "alice"})
    assert response.status_code == 400
    assert Drawer.objects.count() == 1
    assert program.get("/v1/memories/?user_id=bob").json()["results"]


def test_a_deletion_with_a_misspelt_scope_deletes_nothing(owner):
    bound = client_of(owner, subject="bob")
    bound.post("/v1/memories/", {"agent_id": "cook", "messages": "I live in Porto."})
    assert bound.delete("/v1/memories/?agent=diver").status_code == 400
    assert bound.get("/v1/memories/").json()["results"]


def test_a_null_says_nothing(program, owner):
    Palace.objects.own(owner)
    assert program.post("/search", {"query": "bees", "app_id": None}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/recall", {"query": "bees", "max_tokens": None, "top_k": None}),
        ("/search", {"query": "bees", "limit": None}),
        ("/v1/memories/search/", {"query": "bees", "user_id": "ada", "limit": None}),
        ("/episodic/store", {"conversation_id": "c", "summary": "Bees.", "tools": None}),
        ("/turns", {**SAID, "messages": [{**SAID["messages"][0], "name": None}]}),
    ],
)
def test_nor_does_a_null_in_a_field_that_may_be_left_out(program, owner, path, body):
    Palace.objects.own(owner)
    response = program.post(path, body)
    assert response.status_code in (200, 201), response.content


def test_emptying_the_trash_takes_a_null_for_no_limit_of_it(program, owner):
    """What cannot be undone wants a request without doubt."""
    Palace.objects.own(owner)
    refused = program.post("/v1/trash/empty/", {"up_to": None})
    assert refused.status_code == 400


def test_messages_may_have_what_openai_gives_them(program):
    message = {**SAID["messages"][0], "tool_calls": None, "refusal": None, "annotations": []}
    response = program.post("/turns", {**SAID, "messages": [message]})
    assert response.status_code == 201


def test_of_very_many_unknown_fields_the_first_are_named(program):
    answer = program.post("/turns", {f"k{number:05}": number for number in range(10_000)})
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [f"k{number:05}" for number in range(50)]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/turns", {"session_id": "one"}), ("/v1/memories/", {"run_id": "one"})],
)
def test_a_message_of_calls_alone_has_no_words_to_store(program, path, body):
    calling = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    response = program.post(path, {**body, "messages": [*SAID["messages"], calling]})
    assert response.status_code in (200, 201), response.content
    assert Drawer.objects.get().text == SAID["messages"][0]["content"]


def test_a_wrong_choice_is_answered_with_those_there_are(program):
    said = {**SAID, "messages": [{"role": "wizard", "content": "Hi"}]}
    assert "none of user, assistant" in program.post("/turns", said).json()["detail"]


def test_a_body_that_is_no_json_is_answered_with_the_header_to_send(program):
    response = program.post("/recall", "query=bees", content_type="text/plain")
    assert response.status_code == 415
    assert "Content-Type: application/json" in response.json()["detail"]


def test_a_search_may_look_back(program):
    program.post("/turns", {**SAID, "timestamp": "2024-05-01T00:00:00Z"})
    asked = {"query": "Which bees?"}
    found = [
        program.post("/search", {**asked, "as_of": day}).json()["results"]
        for day in ("2024-04-30", "2024-05-02")
    ]
    assert [len(each) for each in found] == [0, 1]

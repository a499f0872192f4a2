"""What OpenAI's clients ask for and Loci does not have is an error in their format."""

from __future__ import annotations

import json

import openai
import pytest
from django.test import Client

from api.openai import views
from settings_app.api_keys import issue
from tests.api.openai.conftest import ask

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Addresses of OpenAI's API: unknown here, known for other methods, and ours as well.
ADDRESSES = (
    "chat/completions",
    "chat/completions/chatcmpl-1",
    "responses",
    "responses/resp_1",
    "responses/resp_1/cancel",
    "models",
    "models/gpt-4o",
    "embeddings",
    "completions",
    "conversations",
    "conversations/conv_1",
    "conversations/conv_1/items",
    "files",
    "files/file-1/content",
    "vector_stores",
    "batches",
    "audio/speech",
    "no such address/%00",
)


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("path", ADDRESSES)
def test_every_refusal_is_in_openais_format(alice, path, slash):
    _, key = issue(alice, "a program")
    client = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)
    for method in METHODS:
        answer = client.generic(method, f"/v1/{path}{slash}", b"{}", "application/json")
        if answer.status_code == 200:
            assert (method, path) == ("GET", "models")
            continue
        assert answer.status_code in (400, 404, 405), (method, answer.text)
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "code", "param"}
        assert error["message"].endswith(".")


def test_what_openai_keeps_as_conversations_is_refused_with_what_to_send(program):
    for call in (program.conversations.create, lambda: program.conversations.create(items=[])):
        with pytest.raises(openai.BadRequestError, match="send previous_response_id") as caught:
            call()
        assert caught.value.code
    with pytest.raises(openai.NotFoundError, match="There is no such address"):
        program.conversations.retrieve("conv_1")


def test_an_address_without_v1_is_named(client_for, alice):
    program = client_for(alice)
    program.base_url = str(program.base_url).removesuffix("v1/")
    for call in (lambda: ask(program, "Hi"), program.models.list):
        with pytest.raises(openai.NotFoundError, match="/v1 at its end"):
            call()


def test_a_file_that_is_too_large_for_an_unknown_address_is_an_error_in_openais_format(program):
    with pytest.raises(openai.APIStatusError, match="too large") as caught:
        program.files.create(file=b"x" * (40 << 20), purpose="user_data")
    assert (caught.value.status_code, caught.value.code) == (413, "too_large")


def test_what_was_not_foreseen_is_an_error_in_openais_format(alice, monkeypatch):
    """Whatever breaks in a view comes out here."""
    monkeypatch.setattr(views, "MOST_TEXTS", None)
    _, key = issue(alice, "a program")
    client = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)
    answer = client.post("/v1/embeddings", json.dumps({"input": "Hi"}), "application/json")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"


def test_rest_clients_read_a_problem_at_the_shared_address(alice):
    _, key = issue(alice, "a program")
    client = Client(headers={"Authorization": f"Bearer {key}"})
    refused = client.post("/v1/conversations/", b"{}", "application/json")
    problem = refused.json()
    assert refused["Content-Type"] == "application/problem+json"
    assert problem["detail"].startswith("source: ")
    assert set(problem["errors"]) == {"source", "conversation_id", "messages"}

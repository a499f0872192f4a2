"""Whatever is sent: a sentence, and nothing stored."""

from __future__ import annotations

import json

import pytest

from palace.models import Drawer, Palace
from settings_app.api_keys import AuditLine

DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
SIXTY = b"[" * 80 + b"]" * 80


def turns(**changed):
    request = {"session_id": "one", "messages": [{"role": "user", "content": "Hello there."}]}
    return json.dumps({**request, **changed}).encode()


BAD = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 400),
    "a list": (b"[]", 400),
    "a word": (b'"turns"', 400),
    "null": (b"null", 400),
    "not UTF-8": (b'{"session_id": "\xff"}', 400),
    "UTF-16": (turns().decode().encode("utf-16"), 400),
    "too deep": (DEEP, 400),
    "rather deep": (b'{"metadata": ' + SIXTY + b"}", 400),
    "NaN": (b'{"session_id": NaN}', 400),
    "endless": (b'{"metadata": {"n": 1e999}}', 400),
    "a huge number": (b'{"metadata": {"n": ' + b"9" * 5_000 + b"}}", 400),
    "NUL in a text": (turns(session_id="a\0b"), 400),
    "NUL in a name": (b'{"metadata": {"a\\u0000": 1}}', 400),
    "half a pair": (b'{"session_id": "\\ud800"}', 400),
    "too large": (turns(session_id="x" * (10 << 20)), 413),
    "no messages": (turns(messages=[]), 400),
    "messages of another kind": (turns(messages={"role": "user"}), 400),
    "a message that is none": (turns(messages=["hello"]), 400),
    "an unknown role": (turns(messages=[{"role": "king", "content": "x"}]), 400),
    "content that is none": (turns(messages=[{"role": "user", "content": 5}]), 400),
    "too many messages": (turns(messages=[{"role": "user", "content": "x"}] * 1_001), 400),
    "a time that is none": (turns(timestamp="yesterday"), 400),
    "a time outside the calendar": (turns(timestamp="99999-01-01T00:00:00Z"), 400),
    "metadata that is none": (turns(metadata=[1]), 400),
    "large metadata": (turns(metadata={"a": "x" * 200_000}), 400),
    "a blank user": (turns(user_id="  "), 400),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_body_that_cannot_be_used_is_refused_with_a_sentence(program, kind):
    body, status = BAD[kind]
    response = program.post("/turns", body, content_type="application/json")
    assert response.status_code == status, response.content[:300]
    problem = response.json()
    assert problem["status"] == status
    assert problem["code"]
    assert problem["detail"].strip()
    assert "Traceback" not in problem["detail"]
    assert not Drawer.objects.exists()
    assert not Palace.objects.exists()


def test_another_media_type_is_refused(program):
    response = program.post("/turns", "a=b", content_type="application/x-www-form-urlencoded")
    assert response.status_code == 415
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "asked",
    [
        {"query": ""},
        {"query": "   "},
        {"query": "x", "max_tokens": -1},
        {"query": "x", "max_tokens": 10**30},
        {"query": "x", "max_tokens": "many"},
        {"query": "x", "top_k": 0},
        {"query": "x", "as_of": "0000-00-00"},
        {"query": ["x"]},
    ],
)
def test_a_question_that_cannot_be_asked(program, owner, asked):
    Palace.objects.own(owner)
    response = program.post("/recall", asked)
    assert response.status_code == 400
    assert response.data["detail"]


def test_an_unknown_recipe_says_which_there_are(program, owner):
    Palace.objects.own(owner)
    response = program.post("/recall", {"query": "x", "recipe": "pancakes"})
    assert response.status_code == 400
    assert response.data["code"] == "unknown_recipe"


@pytest.mark.parametrize(
    ("recipe", "code", "why"),
    [
        ([{"stage": "sieve"}], "bad_recipe", "no stage 'sieve'; choose from `rewrite`"),
        ([{"stage": "graph", "hops": "2"}], "bad_recipe", "a whole number from 0 to 5"),
        ([["graph"]], "bad_recipe", "A stage is an object"),
        ({"stage": "graph"}, "bad_input", "Give the name of a recipe, or a list of stages."),
        (7, "bad_input", "Give the name of a recipe, or a list of stages."),
    ],
)
def test_wrong_stages_of_a_recipe_say_what_is_allowed(program, owner, recipe, code, why):
    Palace.objects.own(owner)
    response = program.post("/recall", {"query": "x", "recipe": recipe})
    assert (response.status_code, response.data["code"]) == (400, code)
    assert why in response.data["detail"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "text",
    ["  spaces \n\r\n\t kept  ", "e\u0301\u200b\u202e", "👩‍👩‍👧", "<b>&amp;</b>", "\ufeffx\x7f"],
)
def test_what_can_be_kept_is_kept_to_the_byte(program, text):
    request = {"session_id": "one", "messages": [{"role": "user", "content": text}]}
    response = program.post("/turns", request)
    assert response.status_code == 201, response.content
    assert Drawer.objects.get(uuid=response.json()["drawers"][0]).text == text


def test_a_nul_in_an_address_is_in_the_audit_log_as_a_mark(owner, program):
    assert program.post("/ledger/a%00b/mark", {"item": "skill:geology"}).status_code == 400
    [line] = AuditLine.objects.filter(owner=owner)
    assert (line.path, line.status) == ("/ledger/a�b/mark", 400)

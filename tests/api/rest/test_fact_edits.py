"""PUT /v1/memories/{id}/: what is answered, and what the graph answers afterwards."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db(transaction=True)
ALICE = "user_id=alice"


def say(program, text):
    answer = program.post("/v1/memories/", {"messages": text, "user_id": "alice"})
    return answer.data["results"]


def edges(program, name):
    answer = program.get(f"/v1/entities/{name}/relations/?{ALICE}")
    return [each["memory"] for each in answer.data.get("results", [])]


def test_everything_follows_the_sentence_and_the_answer_says_so(program):
    [made] = say(program, "I live in Berlin.")
    address = f"/v1/memories/{made['id']}/"
    answer = program.put(address, {"text": "User lives in Lisbon"})
    assert answer.status_code == 200
    assert answer.data["object"] == "Lisbon"
    assert answer.data["changed"] == ["memory", "object", "sources"]
    assert answer.data["note"] is None
    assert program.get(address).headers["ETag"] == answer.headers["ETag"]
    assert edges(program, "Lisbon") == ["User lives in Lisbon"]
    assert edges(program, "Berlin") == []
    shown = program.get("/users/alice/memories?active=true").data["memories"]
    assert [(each["value"], each["source_turn"]) for each in shown] == [("Lisbon", None)]
    assert [event["event"] for event in say(program, "I live in Lisbon.")] == ["NONE"]
    history = program.get(f"{address}history/").data
    assert [line["new_value"] for line in history] == [
        "User lives in Berlin",
        "User lives in Lisbon",
    ]


def test_what_cannot_follow_is_said(program):
    [made] = say(program, "I live in Berlin.")
    answer = program.put(f"/v1/memories/{made['id']}/", {"text": "It is complicated"})
    assert answer.status_code == 200
    assert "could not be read as one statement" in answer.data["note"]
    assert answer.data["object"] == ""
    assert edges(program, "Berlin") == []


def test_what_there_can_be_one_of_is_refused(program):
    [home] = say(program, "I live in Berlin.")
    [work] = say(program, "I work at Siemens.")
    answer = program.put(f"/v1/memories/{work['id']}/", {"text": "User lives in Lisbon"})
    assert (answer.status_code, answer.data["code"]) == (409, "fact_conflict")
    assert program.get(f"/v1/memories/{home['id']}/").data["object"] == "Berlin"


def test_the_same_sentence_changes_nothing(program):
    [made] = say(program, "I live in Berlin.")
    answer = program.put(f"/v1/memories/{made['id']}/", {"text": "User lives in Berlin"})
    assert (answer.data["changed"], answer.data["note"]) == ([], None)

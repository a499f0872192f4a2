from __future__ import annotations

import pytest
from django.test import Client

TURN = {
    "session_id": "smoke",
    "user_id": "u1",
    "messages": [{"role": "user", "content": "I just moved to Berlin."}],
    "timestamp": "2026-05-08T12:00:00Z",
    "metadata": {"from": "a test"},
}


@pytest.mark.django_db(transaction=True)
def test_what_was_said_is_recalled_at_once(program):
    stored = program.post("/turns", TURN)
    assert stored.status_code == 201, stored.content
    assert stored.data["extraction"] == "complete"
    asked = {"query": "where does the user live?", "session_id": "smoke", "user_id": "u1"}
    recalled = program.post("/recall", {**asked, "max_tokens": 512})
    assert recalled.status_code == 200, recalled.content
    assert "Berlin" in recalled.data["context"]
    assert stored.data["id"] in [each["turn_id"] for each in recalled.data["citations"]]
    stages = [{"stage": "semantic", "on": False}, {"stage": "packing", "facts": 0}]
    apart = program.post("/recall", {**asked, "query": "moved Berlin", "recipe": stages})
    assert "Berlin" in apart.data["context"]
    assert "Known facts" in recalled.data["context"]
    assert "Known facts" not in apart.data["context"]
    found = program.post("/search", {**asked, "limit": 5})
    assert [each["content"] for each in found.data["results"]] == ["I just moved to Berlin."]
    assert found.data["results"][0]["metadata"] == {"from": "a test"}
    memories = program.get("/users/u1/memories")
    assert any("Berlin" in each["text"] for each in memories.data["memories"])
    assert program.delete("/sessions/smoke").status_code == 204
    assert program.post("/search", asked).data["results"] == []
    assert program.delete("/users/u1").status_code == 204
    assert program.get("/users/u1/memories").data == {"memories": [], "total": 0}


@pytest.mark.django_db(transaction=True)
def test_what_was_learnt_from_words_in_the_trash_is_not_listed(program):
    """Not the version between two others either, whose memory goes on without it."""
    drawers = {}
    for year, place in ((2023, "Berlin"), (2024, "Hamburg"), (2025, "Paris")):
        said = [{"role": "user", "content": f"I live in {place} now."}]
        turn = {"session_id": place, "user_id": "u1", "messages": said}
        stored = program.post("/turns", {**turn, "timestamp": f"{year}-05-08T12:00:00Z"})
        drawers[place] = stored.data["drawers"][0]

    def listed():
        memories = program.get("/users/u1/memories").data
        assert memories["total"] == len(memories["memories"])
        return {each["value"] for each in memories["memories"]}

    assert listed() == {"Berlin", "Hamburg", "Paris"}
    assert program.delete(f"/v1/drawers/{drawers['Hamburg']}/?user_id=u1").status_code == 200
    assert listed() == {"Berlin", "Paris"}
    back = {"drawers": [drawers["Hamburg"]]}
    assert program.post("/v1/trash/restore/?user_id=u1", back).status_code == 200
    assert listed() == {"Berlin", "Hamburg", "Paris"}


def test_the_schema_and_its_page_are_there(client, db):
    schema = client.get("/api/schema/")
    assert (schema.status_code, schema.json()["openapi"]) == (200, "3.1.0")
    assert schema.headers["Content-Type"] == "application/vnd.oai.openapi+json"
    export = schema.json()["paths"]["/v1/export"]["get"]
    assert [each["name"] for each in export["parameters"]] == ["user_id"]
    assert Client(enforce_csrf_checks=True).post("/api/schema/").status_code == 405
    assert "POST" in client.get("/api/docs/").text


@pytest.mark.django_db(transaction=True)
def test_what_was_asked_before_does_not_displace_what_was_stated(program):
    """Said once, asked in several conversations: recall quotes the statement, not the questions."""
    statement = "I'm allergic to nuts, so I never eat marzipan."
    asked = ["What am I allergic to?", "Do I have any allergies?", "what am i allergic to"]
    talks = {
        "stated": [statement, "We moved the piano into the hall last week."],
        "garden": ["The beans in my garden are late this year.", "Slugs ate the lettuce."],
        **{f"asked {number}": [question] for number, question in enumerate(asked * 2)},
        "states and asks": ["I'm allergic to nuts, what can I eat at the fair?"],
    }
    for session, said in talks.items():
        messages = [{"role": "user", "content": text} for text in said]
        turn = {"session_id": session, "user_id": "u1", "messages": messages}
        assert program.post("/turns", turn).status_code == 201

    def found(query):
        results = program.post("/search", {"query": query, "user_id": "u1", "limit": 20}).data
        return [each["content"] for each in results["results"]]

    for query in ("What am I allergic to?", "Please tell me what my allergies are."):
        contents = found(query)
        assert {*contents[:2]} == {statement, talks["states and asks"][0]}
        questions = [place for place, text in enumerate(contents) if text in asked]
        assert len(questions) == 6
        assert min(questions) > max(p for p, text in enumerate(contents) if text not in asked)
        recalled = program.post("/recall", {"query": query, "user_id": "u1", "max_tokens": 800})
        assert "marzipan" in recalled.data["context"]
        assert not [question for question in asked if question in recalled.data["context"]]
    assert {*found("What did I ask about allergies?")[:3]} <= {*asked}

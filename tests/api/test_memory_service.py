from __future__ import annotations

import pytest

TOLD = {
    "session_id": "smoke",
    "user_id": "u1",
    "messages": [{"role": "user", "content": "I just moved to Berlin."}],
    "timestamp": "2026-05-08T12:00:00Z",
    "metadata": {"from": "a test"},
}


@pytest.mark.django_db(transaction=True)
def test_what_was_told_is_recalled_at_once(program):
    told = program.post("/turns", TOLD)
    assert told.status_code == 201, told.content
    assert told.data["extraction"] == "complete"
    asked = {"query": "where does the user live?", "session_id": "smoke", "user_id": "u1"}
    recalled = program.post("/recall", {**asked, "max_tokens": 512})
    assert recalled.status_code == 200, recalled.content
    assert "Berlin" in recalled.data["context"]
    assert told.data["id"] in [each["turn_id"] for each in recalled.data["citations"]]
    found = program.post("/search", {**asked, "limit": 5})
    assert [each["content"] for each in found.data["results"]] == ["I just moved to Berlin."]
    assert found.data["results"][0]["metadata"] == {"from": "a test"}
    memories = program.get("/users/u1/memories")
    assert any("Berlin" in each["text"] for each in memories.data["memories"])
    assert program.delete("/sessions/smoke").status_code == 204
    assert program.post("/search", asked).data["results"] == []
    assert program.delete("/users/u1").status_code == 204
    assert program.get("/users/u1/memories").data == {"memories": [], "total": 0}


def test_the_schema_and_its_page_are_there(client, db):
    assert client.get("/api/schema/").status_code == 200
    assert "POST" in client.get("/api/docs/").text

"""What the cases of the fact API's contract share."""

from __future__ import annotations

TALK = [
    {"role": "user", "content": "User lives in NYC. I have a cat called Miso."},
    {"role": "assistant", "content": "What a nice name. And what do you do?"},
    {"role": "user", "content": "User likes Python."},
]
NEEDED = "At least one of user_id, agent_id, or run_id must be provided"


def texts(answer):
    return sorted(item["memory"] for item in answer["results"])


def add_one(memory, text, **scope):
    """The id of the one memory that a text makes."""
    [event] = memory.add(text, **(scope or {"user_id": "alice"}))["results"]
    assert event["event"] == "ADD"
    return event["id"]


def where(field, operator, value):
    return {"field": field, "operator": operator, "value": value}

"""POST /v1/conversations/: another program's conversation, each message once."""

from __future__ import annotations

import pytest

from palace.models import Drawer, Room
from tests.api.rest.conftest import client_of

SAID = " Salt is on the left.\r\n"


def body(*texts, **more):
    messages = [
        {"id": f"m{at}", "role": "user", "content": text, "said_at": "2026-11-25T10:00:00Z"}
        for at, text in enumerate(texts)
    ]
    return {"source": "claude-code", "conversation_id": "one", "messages": messages, **more}


def test_each_message_is_filed_once(program, owner):
    about = {"title": "Kitchen", "agent": "Claude Code", "project": "/home/me/kitchen"}
    first = program.post("/v1/conversations/", body(SAID, **about))
    assert (first.status_code, first.data["stored"]) == (200, 1)
    more = program.post("/v1/conversations/", body(SAID, "Pepper is on the right.", " ", **about))
    assert more.data == {
        "conversation_id": "one",
        "stored": 1,
        "present": 1,
        "skipped": {"empty message": 1},
    }
    room = Room.objects.get()
    assert (room.title, room.wing.name, room.source) == ("Kitchen", "kitchen", "claude-code")
    texts = list(Drawer.objects.order_by("position").values_list("text", flat=True))
    assert texts == [SAID, "Pepper is on the right."]


def test_it_goes_to_the_palace_of_the_key(owner):
    client_of(owner, subject="ada").post("/v1/conversations/", body(SAID))
    assert Drawer.objects.get().palace.subject == "ada"
    refused = client_of(owner, subject="ada").post("/v1/conversations/", body(SAID, user_id="ben"))
    assert refused.data["code"] == "wrong_palace"


def test_a_key_that_only_reads_stores_nothing(owner):
    refused = client_of(owner, scopes=["read"]).post("/v1/conversations/", body(SAID))
    assert refused.status_code == 403
    assert not Drawer.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "loci"},
        {"source": "chat"},
        {"conversation_id": ""},
        {"messages": []},
        {"messages": [{"id": "1", "role": "user", "content": "x"}]},
        {"messages": [{"id": "1", "role": "user", "content": "x", "said_at": "soon"}]},
        {"messages": [{"id": "", "role": "user", "content": "x", "said_at": "2026-11-25"}]},
        {"title": "t" * 1001},
    ],
)
def test_bad_input_is_said(program, wrong):
    refused = program.post("/v1/conversations/", body(SAID) | wrong)
    assert refused.status_code == 400, refused.data
    assert not Drawer.objects.exists()

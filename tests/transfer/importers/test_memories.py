"""Memories of other programs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace.transfer.importers import claude, detect, message_lists, read
from palace.transfer.importers.conversation import UNKNOWN_FORM
from tests.transfer.importers.exports import write_json, write_lines

MEMORY = {
    "id": "m1",
    "memory": "Lives in Porto. ",
    "hash": "0",
    "metadata": {"via": "chat"},
    "created_at": "2024-06-01T12:00:00+02:00",
    "user_id": "ana",
}


def read_all(path, format_):
    assert detect(path) is format_
    return list(read(path, format_))


@pytest.mark.parametrize("form", ["results", "list", "lines", "pages"])
def test_mem0s_memories_are_read_in_every_form(tmp_path, form):
    other = MEMORY | {"id": "m2", "memory": "Has a boat.", "user_id": "ben"}
    path = tmp_path / "memories.json"
    match form:
        case "results":
            write_json(path, {"count": 2, "next": None, "results": [MEMORY, other]})
        case "list":
            write_json(path, [MEMORY, other])
        case "lines":
            write_lines(path, [MEMORY, other])
        case _:
            write_lines(path, [{"results": [MEMORY]}, {"results": [other]}])
    first, second = read_all(path, message_lists.MEM0_FORMAT)
    (turn,) = first.turns
    assert (turn.external_id, turn.role, turn.text) == ("m1", "user", "Lives in Porto. ")
    assert turn.said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert turn.metadata == {"mem0": {"metadata": {"via": "chat"}, "user_id": "ana"}}
    assert first.transcript.title == "Memories of ana in mem0"
    assert second.transcript.external_id == "ben"


def test_a_record_without_a_memory_is_counted(tmp_path):
    (found,) = read_all(
        write_json(tmp_path / "a", [MEMORY, {"user_id": "ana"}]), message_lists.MEM0_FORMAT
    )
    assert dict(found.skipped) == {UNKNOWN_FORM: 1}


def test_claudes_summaries_are_kept_and_a_changed_one_is_another_message(tmp_path):
    item = {
        "conversations_memory": "**Work**\n\nAna builds timetables. ",
        "project_memories": {"p-1": "The pier is 3."},
        "account_uuid": "a-1",
    }
    path = write_json(tmp_path / "memories.json", [item])
    (found,) = read_all(path, claude.MEMORIES_FORMAT)
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("assistant", "**Work**\n\nAna builds timetables. "),
        ("assistant", "The pier is 3."),
    ]
    assert found.transcript.external_id == "a-1"
    changed = [item | {"project_memories": {"p-1": "The pier is 2."}}]
    (later,) = read_all(write_json(tmp_path / "later.json", changed), claude.MEMORIES_FORMAT)
    ids = [[turn.external_id for turn in each.turns] for each in (found, later)]
    assert ids[0][0] == ids[1][0]
    assert ids[0][1] != ids[1][1]

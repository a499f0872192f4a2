from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from palace.transfer.importers import detect, message_lists, read
from palace.transfer.importers.message_lists import ONLY_PIECES
from tests.transfer.importers.exports import write_json, write_lines

MESSAGES = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "Ana", "content": " Which pier?\r\n"},
    {"role": "assistant", "content": "Pier 3."},
]
WORDS = [("system", "Be brief."), ("user", " Which pier?\r\n"), ("assistant", "Pier 3.")]


def read_all(path):
    assert detect(path) is message_lists.OPENAI_FORMAT
    return list(read(path, message_lists.OPENAI_FORMAT))


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


@pytest.mark.parametrize("form", ["object", "indented", "list", "messages", "message a line"])
def test_every_form_is_read(tmp_path, form):
    path = tmp_path / "a.json"
    item = {"model": "gpt", "messages": MESSAGES}
    match form:
        case "object":
            write_json(path, item)
        case "indented":
            path.write_text(json.dumps(item, indent=2))
        case "list":
            write_json(path, [item])
        case "messages":
            write_json(path, MESSAGES)
        case _:
            write_lines(path, MESSAGES)
    (found,) = read_all(path)
    assert words(found) == WORDS
    assert found.turns[1].speaker == "Ana"


def test_lines_are_conversations_of_their_own_unless_they_are_the_same(tmp_path):
    others = [*MESSAGES[:2], {"role": "assistant", "content": "Pier 2."}]
    lines = [{"messages": MESSAGES}, {"messages": others}, {"messages": MESSAGES}]
    first, second, third = read_all(write_lines(tmp_path / "a.jsonl", lines))
    assert first.transcript.external_id == third.transcript.external_id
    assert first.transcript.external_id != second.transcript.external_id


def test_ids_and_times_are_kept_where_there_are_any(tmp_path):
    message = {"id": "m", "role": "user", "content": "Q", "created_at": 1_717_236_000}
    (found,) = read_all(write_json(tmp_path / "a", {"id": "c", "messages": [message]}))
    assert (found.transcript.external_id, found.turns[0].external_id) == ("c", "m")
    assert found.turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)


def test_pieces_without_words_are_counted(tmp_path):
    parts = [{"type": "text", "text": "See"}, {"type": "image_url"}, {"type": "text", "text": "it"}]
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    picture = {"role": "user", "content": parts[1:2]}
    messages = [{"role": "user", "content": parts}, call, picture]
    (found,) = read_all(write_json(tmp_path / "a", {"messages": messages}))
    assert words(found) == [("user", "See\n\nit")]
    assert dict(found.left_out) == {"image": 2, "tool call": 1}
    assert dict(found.skipped) == {ONLY_PIECES: 2}

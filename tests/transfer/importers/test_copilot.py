from __future__ import annotations

import json
from datetime import UTC, datetime

from palace.transfer.importers import code_editors, detect, read
from palace.transfer.importers.agent_sessions import OWN_NOTE, RECORD, THINKING, TOOL_CALL
from palace.transfer.importers.json_stream import BROKEN_LINE
from tests.transfer.importers.agent_exports import copilot as chat
from tests.transfer.importers.agent_exports import copilot_request as request
from tests.transfer.importers.agent_exports import copilot_tool as tool
from tests.transfer.importers.exports import write_lines


def read_one(path):
    assert detect(path) is code_editors.COPILOT_FORMAT
    (found,) = read(path, code_editors.COPILOT_FORMAT)
    return found


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_pieces_of_an_answer_are_joined_as_they_are_shown(tmp_path):
    reference = {"kind": "inlineReference", "inlineReference": {"path": "/srv/pier.py"}}
    item = chat(
        request(
            *("r1", " Which pier?\r\n"),
            *({"value": "See "}, reference, {"value": " first."}),
            *({"kind": "thinking", "value": "Hm."}, tool(), {"kind": "undoStop"}),
            {"kind": "markdownContent", "content": {"value": "Pier 3."}},
            tool("run_in_terminal", kind="terminal", commandLine={"original": "make"}),
            *({"value": "Done."}, {"kind": "textEditGroup", "edits": []}),
        ),
        request("r2", "The terminal has ended.", isSystemInitiated=True),
    )
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(item, indent=2))
    found = read_one(path)
    assert words(found) == [
        ("user", " Which pier?\r\n"),
        ("assistant", "See pier.py first.\n\nPier 3."),
        ("tool", "make"),
        ("assistant", "Done."),
    ]
    assert found.turns[0].said_at == datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert found.transcript.agent == "GitHub Copilot"
    assert dict(found.left_out) == {THINKING: 1, TOOL_CALL: 1, RECORD: 1, "edit": 1}
    assert dict(found.skipped) == {OWN_NOTE: 1}


def test_a_log_of_changes_is_replayed(tmp_path):
    start = chat(
        sessionId="c-1", creationDate=1_748_772_000_000, workingDirectory="file:///srv/a%20b"
    )
    changes = [
        {"kind": 0, "v": start},
        {"kind": 1, "k": ["customTitle"], "v": "The pier"},
        {"kind": 2, "k": ["requests"], "v": [request("r1", "Q"), request("r2", "Draft")]},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [request("r3", "R")]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Pier "}, {"value": "3."}]},
        {"kind": 3, "k": ["requests", 1, "response"]},
        {"kind": 1, "k": ["requests", 9, "response"], "v": [{"value": "Nowhere."}]},
    ]
    path = write_lines(tmp_path / "c-1.jsonl", changes)
    path.write_text(path.read_text() + '{"kind": 1, "k": ["cust')
    found = read_one(path)
    assert words(found) == [("user", "Q"), ("assistant", "Pier 3."), ("user", "R")]
    transcript = found.transcript
    assert (transcript.external_id, transcript.title) == ("c-1", "The pier")
    assert transcript.project == "/srv/a b"
    assert dict(found.skipped) == {BROKEN_LINE: 1}


def test_an_early_prompt_is_a_text(tmp_path):
    item = chat({**request("r1", ""), "message": "Which pier?"})
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(item))
    assert words(read_one(path)) == [("user", "Which pier?")]


def test_a_folder_may_have_any_name(tmp_path):
    item = chat(request("r1", "Q"), workingDirectory="file:///srv/[a] #1%20b]")
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(item))
    assert read_one(path).transcript.project == "/srv/[a] #1 b]"

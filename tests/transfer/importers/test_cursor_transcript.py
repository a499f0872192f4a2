from __future__ import annotations

from palace.transfer.importers import code_editors, detect, read
from palace.transfer.importers.agent_sessions import RECORD, SUB_AGENT, TOOL_CALL
from palace.transfer.importers.conversation import UNKNOWN_FORM
from palace.transfer.importers.json_stream import BROKEN_LINE
from tests.transfer.importers.agent_exports import SESSION, cursor_line, cursor_typed
from tests.transfer.importers.exports import write_lines, write_zip


def told(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_what_was_typed_answered_and_run_is_kept_with_the_line_as_its_id(tmp_path):
    calls = [("Shell", {"command": "grep pier *"}), ("Read", {"path": "pier.py"})]
    lines = [
        cursor_typed("  Which pier?\n"),
        cursor_line("assistant", "Let me look.", calls=calls),
        cursor_line("assistant", "Pier 3."),
        {"type": "turn_ended", "status": "success"},
        {"role": "system", "message": {"content": []}},
    ]
    path = write_lines(tmp_path / f"{SESSION}.jsonl", lines)
    path.write_text(path.read_text() + '{"role": "user", "mess')
    assert detect(path) is code_editors.TRANSCRIPT_FORMAT
    (found,) = read(path, code_editors.TRANSCRIPT_FORMAT)
    assert told(found) == [
        ("user", "  Which pier?\n"),
        ("assistant", "Let me look."),
        ("tool", "grep pier *"),
        ("assistant", "Pier 3."),
    ]
    assert [turn.external_id for turn in found.turns] == ["0", "1", "1/1", "2"]
    assert dict(found.left_out) == {TOOL_CALL: 1, RECORD: 1}
    assert dict(found.skipped) == {UNKNOWN_FORM: 1, BROKEN_LINE: 1}
    assert found.transcript.external_id == SESSION


def test_sub_agents_in_a_zip_of_the_folder_are_skipped(tmp_path):
    line = '{"role": "user", "message": {"content": [{"type": "text", "text": "Q"}]}}\n'
    folder = f"projects/home-ana-ferry/agent-transcripts/{SESSION}"
    members = {f"{folder}/{SESSION}.jsonl": line, f"{folder}/subagents/a.jsonl": line}
    path = write_zip(tmp_path / "cursor.zip", members)
    assert detect(path) is code_editors.TRANSCRIPT_FORMAT
    first, second = read(path, code_editors.TRANSCRIPT_FORMAT)
    assert told(first) == [("user", "Q")]
    assert dict(second.skipped) == {SUB_AGENT: 1}

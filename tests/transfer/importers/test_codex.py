"""Codex: prompts as they were typed, answers, commands and patches."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace.transfer.importers import detect, read, terminal_agents
from palace.transfer.importers.agent_sessions import OWN_NOTE, SUB_AGENT
from tests.transfer.importers.agent_exports import (
    SESSION,
    codex_call,
    codex_message,
    codex_meta,
)
from tests.transfer.importers.agent_exports import (
    codex as line,
)
from tests.transfer.importers.exports import write_lines

PATCH = "*** Begin Patch\n*** Update File: times.py\n-PIER = 2\n+PIER = 3 \n*** End Patch\n"


def read_one(tmp_path, *lines):
    path = write_lines(tmp_path / "rollout-2025-06-01.jsonl", lines)
    assert detect(path) is terminal_agents.CODEX_FORMAT
    (found,) = read(path, terminal_agents.CODEX_FORMAT)
    return found


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_a_prompt_is_kept_once_as_it_was_typed(tmp_path):
    found = read_one(
        tmp_path,
        codex_meta(),
        codex_message("user", "<environment_context>\n  <cwd>/home</cwd>\n</environment_context>"),
        codex_message("user", "# Context from my IDE\nWhich pier? "),
        line("event_msg", {"type": "user_message", "message": "Which pier? "}),
        line("response_item", {"type": "reasoning", "summary": []}),
        line("event_msg", {"type": "agent_message", "message": "Pier 3."}),
        codex_message("assistant", "Pier 3.", at="2025-06-01T10:00:09Z"),
    )
    assert words(found) == [("user", "Which pier? "), ("assistant", "Pier 3.")]
    transcript = found.transcript
    assert (transcript.source, transcript.external_id) == ("codex", SESSION)
    assert (transcript.title, transcript.agent) == ("Which pier?", "Codex")
    assert transcript.project == "/home/ana/ferry-times"
    assert found.turns[1].said_at == datetime(2025, 6, 1, 10, 0, 9, tzinfo=UTC)
    assert dict(found.skipped) == {OWN_NOTE: 1}
    assert dict(found.left_out) == {"thinking": 1}


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (codex_call("shell", command=["bash", "-lc", "make times"]), "make times"),
        (codex_call("shell", command=["git", "log", "a b"]), "git log 'a b'"),
        (codex_call("exec_command", cmd="ls -l"), "ls -l"),
        (codex_call("shell_command", command="ls"), "ls"),
        (codex_call("shell", command=["apply_patch", PATCH]), PATCH),
        (codex_call("apply_patch", input=PATCH), PATCH),
        (
            line(
                "response_item", {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH}
            ),
            PATCH,
        ),
        (
            line(
                "response_item",
                {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}},
            ),
            "ls",
        ),
    ],
)
def test_commands_and_patches_are_kept_as_they_are_shown(tmp_path, call, shown):
    output = line("response_item", {"type": "function_call_output", "output": "long"})
    found = read_one(tmp_path, codex_meta(), call, output)
    assert words(found) == [("tool", shown)]
    assert dict(found.left_out) == {"tool result": 1}


def test_other_tools_are_left_out(tmp_path):
    broken = line("response_item", {"type": "function_call", "name": "shell", "arguments": "{"})
    found = read_one(tmp_path, codex_meta(), codex_call("update_plan", plan=[]), broken)
    assert not found.turns
    assert dict(found.left_out) == {"tool call": 2}


def test_a_sub_agents_session_is_counted_not_kept(tmp_path):
    meta = codex_meta(source={"subagent": "review"})
    found = read_one(tmp_path, meta, codex_message("user", "Review it"))
    assert not found.turns
    assert dict(found.skipped) == {SUB_AGENT: 1}


def test_the_first_versions_had_no_envelopes(tmp_path):
    said = codex_message("user", "Which pier?")["payload"]
    found = read_one(
        tmp_path,
        {"id": SESSION, "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        said,
    )
    assert words(found) == [("user", "Which pier?")]
    assert found.transcript.external_id == SESSION
    assert found.turns[0].said_at == datetime(2025, 5, 1, 10, tzinfo=UTC)

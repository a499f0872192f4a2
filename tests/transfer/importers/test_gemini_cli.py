"""Gemini CLI: sessions as one object and as JSON Lines."""

from __future__ import annotations

import json

from palace.transfer.importers import detect, read, terminal_agents
from palace.transfer.importers.agent_sessions import OWN_NOTE, SUB_AGENT
from tests.transfer.importers.agent_exports import (
    SESSION,
)
from tests.transfer.importers.agent_exports import (
    gemini_cli as session,
)
from tests.transfer.importers.agent_exports import (
    gemini_cli_message as message,
)
from tests.transfer.importers.exports import write_lines, write_zip

DIFF = "--- times.py\n+++ times.py\n@@ -1 +1 @@\n-PIER = 2\n+PIER = 3 \n"


def read_one(path):
    assert detect(path) is terminal_agents.GEMINI_CLI_FORMAT
    (found,) = read(path, terminal_agents.GEMINI_CLI_FORMAT)
    return found


def written(tmp_path, chat):
    """As Gemini CLI writes it, over many lines."""
    path = tmp_path / "session-2025-06-01.json"
    path.write_text(json.dumps(chat, indent=2))
    return path


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_words_commands_and_diffs_are_kept(tmp_path):
    calls = [
        {"name": "read_file", "args": {"path": "times.py"}, "resultDisplay": "Read it."},
        {"name": "run_shell_command", "args": {"command": "make times"}, "resultDisplay": "ok"},
        {"name": "replace", "args": {"old_string": "2"}, "resultDisplay": {"fileDiff": DIFF}},
    ]
    chat = session(
        message("user", " Which pier? \r\n"),
        message("info", "Update available", key="m2"),
        message("gemini", "Pier 3.", key="m3", toolCalls=calls, thoughts=[{"subject": "Piers"}]),
        message("gemini", "", key="m4", toolCalls=calls[:1]),
        summary="The pier",
    )
    found = read_one(written(tmp_path, chat))
    assert words(found) == [
        ("user", " Which pier? \r\n"),
        ("assistant", "Pier 3."),
        ("tool", "make times"),
        ("tool", DIFF),
    ]
    transcript = found.transcript
    assert (transcript.source, transcript.external_id) == ("gemini-cli", SESSION)
    assert (transcript.title, transcript.agent) == ("The pier", "Gemini CLI")
    assert transcript.project == "Gemini project 77777777"
    assert dict(found.skipped) == {OWN_NOTE: 1}
    assert dict(found.left_out) == {"thinking": 1, "tool call": 2}


def test_what_was_typed_is_kept_and_not_what_was_added(tmp_path):
    typed = message(
        "user",
        [{"text": "Read @times.py"}, {"text": "PIER = 2"}],
        displayContent=[{"text": "Read @times.py"}],
    )
    picture = message("user", [{"text": "See"}, {"inlineData": {}}], key="m2")
    found = read_one(written(tmp_path, session(typed, picture)))
    assert words(found) == [("user", "Read @times.py"), ("user", "See")]
    assert dict(found.left_out) == {"file": 1}


def test_in_json_lines_the_last_form_of_a_message_counts(tmp_path):
    about = session()
    del about["messages"]
    lines = [
        about,
        message("user", "Which pier?"),
        message("gemini", "Pier", key="m2"),
        message("gemini", "Pier 3.", key="m2"),
        {"$set": {"summary": "Piers", "directories": ["/home/ana/ferry"]}},
        {"$rewindTo": "m1"},
    ]
    found = read_one(write_lines(tmp_path / "session-1.jsonl", lines))
    assert words(found) == [("user", "Which pier?"), ("assistant", "Pier 3.")]
    assert (found.transcript.title, found.transcript.project) == ("Piers", "/home/ana/ferry")


def test_the_folder_names_the_project_and_sub_agents_are_counted(tmp_path):
    sub_agents = session(message("user", "Search"), kind="subagent", sessionId="other")
    members = {
        ".gemini/tmp/ferry/chats/session-1.json": session(message("user", "Q")),
        ".gemini/tmp/ferry/chats/session-2.json": sub_agents,
        ".gemini/tmp/ferry/logs.json": [{"type": "user", "message": "Q"}],
    }
    path = write_zip(tmp_path / "gemini.zip", members)
    assert detect(path) is terminal_agents.GEMINI_CLI_FORMAT
    first, second = read(path, terminal_agents.GEMINI_CLI_FORMAT)
    assert (first.transcript.project, words(first)) == ("ferry", [("user", "Q")])
    assert dict(second.skipped) == {SUB_AGENT: 1}

"""`locipalace hook`: what coding agents call, with the events as they send them."""

from __future__ import annotations

import io
import json
import subprocess

import pytest
from django.contrib.auth.models import User

from locipalace.agents import hook_command
from locipalace.cli.connect import our_hook
from palace.mining.pipeline import mine_rooms
from palace.models import Drawer, Palace, Room
from palace.transfer import import_jobs
from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer
from tests.client.scripted_server import Answer, OddServer

SESSION = "11111111-2222-3333-4444-555555555555"
SAID = "We keep the tide tables in Postgres, not in SQLite.\u2028 Tabs! "
ANSWER = "Noted. Still open: the old tables."


@pytest.fixture
def owner(transactional_db):
    return User.objects.create_superuser("owner")


@pytest.fixture
def loci(owner, monkeypatch, tmp_path):
    """A running Loci, and a key of the owner's."""
    _, key = issue(owner, "an agent", scopes=["read", "write"], subject="")
    monkeypatch.setenv("LOCI_API_KEY", key)
    with AsgiServer() as server:
        monkeypatch.setenv("LOCI_URL", server.url)
        yield server
        assert server.misplaced_queries == []


@pytest.fixture
def palace(owner):
    return Palace.objects.own(owner)


def call(event):
    out, errors = io.StringIO(), io.StringIO()
    hook_command.run(
        io.StringIO(event if isinstance(event, str) else json.dumps(event)), out, errors
    )
    return json.loads(out.getvalue()), errors.getvalue()


def record(number, role, content):
    return {
        "type": role,
        "sessionId": SESSION,
        "uuid": f"m{number}",
        "cwd": "/home/me/tides",
        "timestamp": f"2026-11-25T10:{number:02}:00Z",
        "message": {"role": role, "content": content},
    }


CLAUDE_CODE = [
    record(1, "user", SAID),
    record(2, "assistant", [{"type": "text", "text": ANSWER}]),
    record(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "noise"}]),
]
CODEX = [
    {"type": "session_meta", "payload": {"id": SESSION, "cwd": "/home/me/tides"}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": SAID}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER}],
        },
    },
]
GEMINI = [
    {
        "sessionId": SESSION,
        "projectHash": "tides",
        "startTime": "2026-11-25T10:00:00Z",
        "lastUpdated": "2026-11-25T10:00:00Z",
        "messages": [
            {"id": "1", "timestamp": "2026-11-25T10:00:00Z", "type": "user", "content": SAID},
            {"id": "2", "timestamp": "2026-11-25T10:01:00Z", "type": "gemini", "content": ANSWER},
        ],
    }
]
CURSOR = [
    {
        "role": "user",
        "message": {"content": [{"type": "text", "text": f"<user_query>\n{SAID}\n</user_query>"}]},
    },
    {"role": "assistant", "message": {"content": [{"type": "text", "text": ANSWER}]}},
    {"type": "turn_ended", "status": "success"},
]
# Of each agent: a transcript, its name, and an event at which it is saved.
AGENTS = {
    "claude-code": (CLAUDE_CODE, f"{SESSION}.jsonl", "Stop"),
    "codex": (CODEX, "rollout-2026-11-25.jsonl", "PreCompact"),
    "gemini-cli": (GEMINI, "session-2026.json", "AfterAgent"),
    "cursor-transcript": (CURSOR, f"{SESSION}.jsonl", "stop"),
}


def write(path, records):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return path


def saving(event, path):
    return {"hook_event_name": event, "session_id": SESSION, "transcript_path": str(path)}


@pytest.mark.some(2)
@pytest.mark.parametrize("source", sorted(AGENTS))
def test_a_session_is_saved_once_as_an_import_would(source, loci, palace, tmp_path):
    records, name, event = AGENTS[source]
    path = write(tmp_path / name, records)
    assert call(saving(event, path)) == ({}, "")
    drawers = Drawer.objects.within(palace).order_by("position")
    kept = list(drawers.values_list("source", "conversation", "text"))
    assert kept == [(source, SESSION, SAID), (source, SESSION, ANSWER)]
    assert call(saving("SessionEnd", path)) == ({}, "")
    assert import_jobs.preview(palace, path).preview["new"] == 0
    assert list(drawers.values_list("source", "conversation", "text")) == kept


def test_it_goes_to_the_wing_of_its_project_and_grows(loci, palace, tmp_path):
    path = write(tmp_path / f"{SESSION}.jsonl", CLAUDE_CODE)
    call(saving("Stop", path))
    write(path, [*CLAUDE_CODE, record(4, "user", "And now the old tables.")])
    call(saving("PreCompact", path))
    room = Room.objects.within(palace).get()
    assert (room.wing.name, room.agent) == ("tides", "Claude Code")
    texts = Drawer.objects.within(palace).order_by("position").values_list("text", flat=True)
    assert list(texts) == [SAID, ANSWER, "And now the old tables."]


def test_cursor_names_the_project_beside_its_transcript_and_takes_context_in_its_own_form(
    loci, palace, tmp_path
):
    path = write(tmp_path / f"{SESSION}.jsonl", CURSOR)
    roots = {"workspace_roots": ["/home/me/tides"], "cursor_version": "3.7.21"}
    assert call({**saving("stop", path), **roots}) == ({}, "")
    room = Room.objects.within(palace).get()
    assert (room.wing.name, room.agent) == ("tides", "Cursor")
    mine_rooms([room])
    answer, errors = call({"hook_event_name": "sessionStart", **roots})
    assert "We keep the tide tables in Postgres" in answer.pop("additional_context")
    assert (answer, errors) == ({}, "")


def test_a_long_session_is_sent_in_parts(loci, palace, tmp_path, monkeypatch):
    monkeypatch.setattr(hook_command, "MOST_MESSAGES", 3)
    long = [record(number, "user", f"Message {number}.") for number in range(10)]
    assert call(saving("Stop", write(tmp_path / f"{SESSION}.jsonl", long))) == ({}, "")
    texts = Drawer.objects.within(palace).order_by("position").values_list("text", flat=True)
    assert list(texts) == [f"Message {number}." for number in range(10)]


def test_a_new_session_begins_with_what_is_known(loci, palace, tmp_path):
    start = {"hook_event_name": "SessionStart", "source": "startup", "cwd": "/home/me/tides"}
    assert call(start) == ({}, ""), "Nothing is known yet."
    call(saving("Stop", write(tmp_path / f"{SESSION}.jsonl", CLAUDE_CODE)))
    mine_rooms(list(Room.objects.within(palace)))
    answer, errors = call(start)
    said = answer["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    assert "We keep the tide tables in Postgres" in said["additionalContext"]
    assert errors == ""
    assert call({**start, "source": "resume"}) == ({}, ""), "Its transcript has it."


def test_what_loci_recalled_is_not_saved_as_said(loci, palace, tmp_path):
    path = write(tmp_path / f"{SESSION}.jsonl", CLAUDE_CODE)
    call(saving("Stop", path))
    mine_rooms(list(Room.objects.within(palace)))
    start = {"hook_event_name": "SessionStart", "source": "clear", "cwd": "/home/me/tides"}
    context = call(start)[0]["hookSpecificOutput"]["additionalContext"]
    write(path, [*CLAUDE_CODE, record(5, "user", f"{context[context.index('<memory') :]}\n\nHi")])
    call(saving("Stop", path))
    assert [drawer.text for drawer in Drawer.objects.order_by("-pk")[:1]] == ["Hi"]


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ("nonsense", "JSON object"),
        ("[]", "JSON object"),
        pytest.param("[" * 100_000, "JSON object", id="deep"),
        ({"hook_event_name": "SessionStart"}, "does not answer"),
    ],
)
def test_without_loci_the_agent_goes_on(event, sentence, monkeypatch):
    monkeypatch.setenv("LOCI_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LOCI_API_KEY", "loci_x")
    answer, errors = call(event)
    assert answer == {}
    assert sentence in errors


def test_a_name_that_is_none_is_said(monkeypatch):
    monkeypatch.setenv("LOCI_URL", "http://here..there")
    monkeypatch.setenv("LOCI_API_KEY", "loci_x")
    answer, errors = call({"hook_event_name": "SessionStart"})
    assert (answer, "Check the address" in errors) == ({}, True)


@pytest.mark.parametrize("body", ["<html>Welcome!</html>", [1], "[" * 100_000])
def test_what_answers_and_is_no_loci_is_said(body, monkeypatch, tmp_path):
    monkeypatch.setenv("LOCI_API_KEY", "loci_x")
    path = write(tmp_path / f"{SESSION}.jsonl", CLAUDE_CODE)
    with OddServer(Answer(200, body), Answer(200, body)) as server:
        monkeypatch.setenv("LOCI_URL", server.url)
        for event in ({"hook_event_name": "SessionStart"}, saving("Stop", path)):
            answer, errors = call(event)
            assert (answer, "is no Loci" in errors) == ({}, True)


def test_an_error_of_another_program_at_the_address_is_said(monkeypatch):
    monkeypatch.setenv("LOCI_API_KEY", "loci_x")
    with OddServer(Answer(501, "<html>Unsupported</html>")) as server:
        monkeypatch.setenv("LOCI_URL", server.url)
        answer, errors = call({"hook_event_name": "SessionStart"})
    assert (answer, "501 came back, not in Loci's form" in errors) == ({}, True)


def test_a_key_that_may_not_write_is_said(loci, owner, monkeypatch, tmp_path):
    _, key = issue(owner, "a reader", scopes=["read"])
    monkeypatch.setenv("LOCI_API_KEY", key)
    answer, errors = call(saving("Stop", write(tmp_path / f"{SESSION}.jsonl", CLAUDE_CODE)))
    assert (answer, "may not write" in errors) == ({}, True)


@pytest.mark.parametrize("path", [None, "", "/no/such/file", 7, "/x" * 5_000, "/" + "x" * 5_000])
def test_before_anything_was_said_there_is_nothing_to_save(path, loci):
    assert call({"hook_event_name": "Stop", "transcript_path": path}) == ({}, "")


def test_a_transcript_in_no_known_format_is_said(loci, tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text('{"unknown": 1}\n')
    assert "was not saved" in call(saving("Stop", file))[1]


def test_other_events_change_nothing(loci):
    assert call({"hook_event_name": "PreToolUse", "tool_name": "Bash"}) == ({}, "")


def test_the_command_runs_nothing_of_the_folder_it_is_called_in(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('Not ours.')\n")
    (tmp_path / "locipalace").mkdir()
    (tmp_path / "locipalace" / "__init__.py").write_text("raise SystemExit('Not ours.')\n")
    done = subprocess.run(
        ["sh", "-c", our_hook("claude-code")],
        input="{}",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("{}\n", "")

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from language.storable import EMPTY
from palace.transfer.importers import cursor_database, detect, read
from palace.transfer.importers.agent_sessions import OWN_NOTE, SUB_AGENT, THINKING, TOOL_CALL
from palace.transfer.importers.conversation import UNKNOWN_FORM
from palace.transfer.importers.cursor_database import MISSING, NOT_SHOWN
from tests.transfer.importers.agent_exports import (
    cursor_bubble,
    cursor_call,
    cursor_composer,
)
from tests.transfer.importers.agent_exports import cursor_database as database
from tests.transfer.importers.exports import write_zip


def told(found):
    return [(turn.role, turn.text) for turn in found.turns]


def only(path):
    assert detect(path) is cursor_database.FORMAT
    (found,) = read(path, cursor_database.FORMAT)
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.vscdb"


def test_words_commands_and_diffs_come_in_the_order_of_the_chat(path):
    diff = {"diff": {"chunks": [{"diffString": "- 2\n+ 3"}, {"diffString": "+ 4"}]}}
    bubbles = (
        cursor_bubble("z", "  Which pier?", workspaceUris=["file:///home/ana/ferry%20times"]),
        cursor_bubble("b", by_user=False, thinking={"text": "Hm."}),
        cursor_call("c", "run_terminal_command_v2", {"output": "3"}, command="grep pier *"),
        cursor_call("d", "edit_file", diff, relativeWorkspacePath="pier.py"),
        cursor_call("e", "read_file_v2", {"contents": "…"}, path="pier.py"),
        cursor_bubble("a", "Pier 3.", by_user=False, at="2025-06-01T10:01:00.000Z", images=[{}]),
    )
    found = only(database(path, cursor_composer(*bubbles)))
    assert told(found) == [
        ("user", "  Which pier?"),
        ("tool", "grep pier *"),
        ("tool", "--- pier.py\n+++ pier.py\n- 2\n+ 3\n+ 4"),
        ("assistant", "Pier 3."),
    ]
    assert dict(found.left_out) == {THINKING: 1, TOOL_CALL: 1, "image": 1}
    assert not found.skipped
    assert found.turns[-1].said_at == datetime(2025, 6, 1, 10, 1, tzinfo=UTC)
    transcript = found.transcript
    assert (transcript.external_id, transcript.title) == ("c-1", "The pier")
    assert (transcript.agent, transcript.project) == ("Cursor", "/home/ana/ferry times")


def test_what_is_not_of_the_chat_is_counted(path):
    chat = cursor_composer(
        cursor_bubble("a", "Q"),
        cursor_bubble("b", by_user=False),
        cursor_bubble("c", "Out of credit.", by_user=False, errorDetails={"message": "…"}),
        cursor_bubble("d", "…", type="odd"),
        cursor_bubble("e", by_user=False, toolFormerData={"name": ["odd"], "result": "{"}),
    )
    chat["composerData:c-1"]["fullConversationHeadersOnly"].append({"bubbleId": "gone"})
    old = {"bubbleId:c-1:old": cursor_bubble("old", "Q?")}
    found = only(database(path, chat, old))
    assert told(found) == [("user", "Q")]
    assert dict(found.left_out) == {TOOL_CALL: 1}
    reasons = (EMPTY, OWN_NOTE, UNKNOWN_FORM, MISSING, NOT_SHOWN)
    assert dict(found.skipped) == dict.fromkeys(reasons, 1)


def test_older_chats_have_their_messages_within(path):
    inside = [cursor_bubble("a", "Q", at=None), cursor_bubble("b", "A", by_user=False, at=None)]
    found = only(database(path, cursor_composer(conversation=inside)))
    assert told(found) == [("user", "Q"), ("assistant", "A")]
    assert {turn.said_at for turn in found.turns} == {datetime(2025, 6, 1, 10, tzinfo=UTC)}


def test_folders_are_known_and_what_agents_say_to_each_other_is_skipped(path):
    chats = [cursor_composer(cursor_bubble("a", "Q"), key=key) for key in ("c-1", "c-2")]
    folders = [("c-1", "/home/ana/ferry", 0), ("c-2", "/home/ana/ferry", 1)]
    first, second = read(database(path, *chats, folders=folders), cursor_database.FORMAT)
    assert (first.transcript.project, told(first)) == ("/home/ana/ferry", [("user", "Q")])
    assert dict(second.skipped) == {SUB_AGENT: 1}


def test_it_is_read_from_a_zip_and_a_folder_as_well(path, tmp_path):
    database(path, cursor_composer(cursor_bubble("a", "Q")))
    zipped = write_zip(tmp_path / "cursor.zip", {"globalStorage/state.vscdb": path.read_bytes()})
    assert (
        told(only(zipped)) == told(only(tmp_path.joinpath("state.vscdb").parent)) == [("user", "Q")]
    )


def test_what_cursor_has_just_written_is_read(path):
    """It keeps the database open, and the newest rows in a file beside it."""
    database(path, cursor_composer(cursor_bubble("a", "Q")))
    with closing(sqlite3.connect(path)) as open_database:
        open_database.execute("PRAGMA journal_mode = WAL")
        rows = cursor_composer(cursor_bubble("a", "Q2"))
        open_database.execute(
            "INSERT INTO cursorDiskKV VALUES ('bubbleId:c-1:a', ?)",
            (str(rows["bubbleId:c-1:a"]).replace("'", '"'),),
        )
        open_database.commit()
        assert told(only(path)) == [("user", "Q2")]


@pytest.mark.parametrize("schema", ["CREATE TABLE t (a)", "CREATE VIEW cursorDiskKV AS SELECT 1"])
def test_another_database_is_refused(path, schema):
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(schema)
    with pytest.raises(BadImport, match="globalStorage"):
        list(read(path, detect(path)))


def test_a_database_that_is_cut_off_is_refused(path):
    database(path, cursor_composer(cursor_bubble("a", "Q" * 20_000)))
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(BadImport, match="cannot be read as a database"):
        list(read(path, detect(path)))

"""What docs/migrating.md says of other memories' files: they are read as it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from palace.transfer.importers import detect, message_lists, read, text_files
from tests.config.conftest import PROJECT

PAGE = (PROJECT / "docs" / "migrating.md").read_text()
# A room as MemPalace's exporter writes it.
ROOM = """# tides / general

## drawer_tides_general_0a1b

> We keep the tide tables in Postgres.
> They change once a year.

| Field | Value |
|-------|-------|
| Source | notes.md |
| Filed | 2026-05-08T09:30:00 |
| Added by | mempalace |

---

"""


def test_a_thread_of_zeps_is_a_list_of_messages(tmp_path):
    [line] = re.findall(r"^\{.*\}$", PAGE, re.MULTILINE)
    path = tmp_path / "ada.jsonl"
    path.write_text(f"{line}\n{line.replace('thread-1', 'thread-2')}\n")
    assert detect(path) is message_lists.OPENAI_FORMAT
    first, second = (found.transcript for found in read(path, message_lists.OPENAI_FORMAT))
    assert (first.external_id, second.external_id) == ("thread-1", "thread-2")
    [turn] = first.turns
    assert (turn.role, turn.text) == ("user", "I just moved to Lisbon.")
    assert turn.said_at == datetime(2026, 5, 8, 9, 30, tzinfo=UTC)


def test_a_room_of_mempalaces_is_one_note(tmp_path):
    room = tmp_path / "export" / "tides" / "general.md"
    room.parent.mkdir(parents=True)
    room.write_text(ROOM)
    [found] = read(tmp_path / "export", detect(tmp_path / "export"))
    assert detect(tmp_path / "export") is text_files.MARKDOWN_FORMAT
    [turn] = found.transcript.turns
    assert turn.text == ROOM

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from palace.transfer.importers import MARKDOWN, detect, read, text_files
from palace.transfer.importers.agent_sessions import COMMAND, RECORD
from tests.transfer.importers.agent_exports import aider as session
from tests.transfer.importers.agent_exports import aider_prompt

ANSWER = """# Timetable

#### Which pier

> Pier 3, says the board.

```python
pier = 3
```"""


def read_all(tmp_path, content):
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(content)
    assert detect(path) is text_files.AIDER_FORMAT
    return list(read(path, text_files.AIDER_FORMAT))


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_a_session_begins_with_its_time_and_headings_of_an_answer_stay_in_it(tmp_path):
    first, second = read_all(
        tmp_path,
        session(aider_prompt("Which pier?\n\n  Look."), f"\n{ANSWER}\n\n", "> Tokens: 1k sent.  \n")
        + session(aider_prompt("Thanks"), at="2025-06-02 08:00:00"),
    )
    assert words(first) == [("user", "Which pier?\n\n  Look."), ("assistant", ANSWER)]
    assert first.turns[0].said_at == datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert first.transcript.title == "Which pier?"
    assert first.transcript.agent == "Aider"
    assert dict(first.left_out) == {RECORD: 2}
    assert second.turns[0].said_at == datetime(2025, 6, 2, 8, tzinfo=UTC)
    assert first.transcript.external_id != second.transcript.external_id


def test_questions_and_shell_commands_are_kept_and_other_commands_are_not(tmp_path):
    prompts = ("/add pier.py", "/ask Which pier?", "/run make", "!ls", "/drop", "/etc is full")
    (found,) = read_all(tmp_path, session(*map(aider_prompt, prompts)))
    assert words(found) == [("user", "/ask Which pier?"), ("tool", "/run make"), ("tool", "!ls")]
    assert dict(found.skipped) == {COMMAND: 3}


def test_a_file_whose_spaces_an_editor_took_away_is_read(tmp_path):
    content = session(aider_prompt("Which pier?"), "\nPier 3.\n\n").replace("  \n", "\n")
    (found,) = read_all(tmp_path, content)
    assert words(found) == [("user", "Which pier?"), ("assistant", "Pier 3.")]


def test_a_session_that_went_on_keeps_its_id(tmp_path):
    begun = session(aider_prompt("Which pier?"))
    (before,) = read_all(tmp_path, begun)
    (after,) = read_all(tmp_path, begun + "\nPier 3.\n")
    assert before.transcript.external_id == after.transcript.external_id
    assert after.turns[0] == before.turns[0]


def test_other_markdown_stays_a_note_and_other_bytes_are_refused(tmp_path):
    note = tmp_path / "note.md"
    note.write_text("# My aider chat started at noon\n")
    assert detect(note) is MARKDOWN
    broken = tmp_path / "aider.md"
    broken.write_bytes(session(aider_prompt("Q")).encode() + b"\xff\n")
    with pytest.raises(BadImport, match="not UTF-8"):
        list(read(broken, detect(broken)))

"""Markdown: talks become conversations, everything else stays a note to the byte."""

from __future__ import annotations

import os
import stat
import zipfile
from datetime import UTC, datetime

import pytest

from palace.transfer.importers import CHATGPT, MARKDOWN, PLAIN, detect, read
from palace.transfer.importers.text_files import NO_TEXT
from tests.transfer.importers.exports import chatgpt_talk, plain, write_json, write_lines, write_zip

NOTE = "---\ntitle: 'Rowing'\ndate: 2024-06-01\n---\n\n# Boats \r\n\n- oar\u2028\t \n"
TALK = """\
# On tea

**You:** Which tea?
Green or black?

**Assistant:** Oolong.

```
**You:** this is code
```

**You:**

    indented
"""


def read_all(path):
    assert detect(path) is MARKDOWN
    return {each.transcript.external_id: each for each in read(path, MARKDOWN)}


def test_a_note_is_one_message_to_the_byte(tmp_path):
    found = read_all(write_zip(tmp_path / "a.zip", {"vault/boats/oars.md": NOTE, "vault/x.md": ""}))
    note = found["boats/oars.md"]
    (turn,) = note.turns
    assert turn.text == NOTE
    assert (turn.role, turn.said_at) == ("user", datetime(2024, 6, 1, tzinfo=UTC))
    assert note.transcript.title == "Rowing"
    assert found["x.md"].turns == []


def test_a_talk_is_a_conversation(tmp_path):
    path = tmp_path / "2024-06-02 tea.md"
    path.write_text(TALK)
    (talk,) = read_all(path).values()
    assert talk.transcript.title == "On tea"
    assert [(turn.role, turn.speaker, turn.text) for turn in talk.turns] == [
        ("user", "You", "Which tea?\nGreen or black?"),
        ("assistant", "Assistant", "Oolong.\n\n```\n**You:** this is code\n```"),
        ("user", "You", "    indented"),
    ]
    assert {turn.said_at for turn in talk.turns} == {datetime(2024, 6, 2, tzinfo=UTC)}


def test_headings_tell_who_speaks_as_well_and_what_comes_before_is_kept(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("Exported today.\n\n## User\n\nHi\n\n## ChatGPT:\n\n## Sub\nHello\n")
    (talk,) = read_all(path).values()
    assert [(turn.role, turn.text) for turn in talk.turns] == [
        ("system", "Exported today."),
        ("user", "Hi"),
        ("assistant", "## Sub\nHello"),
    ]


def test_where_only_one_side_speaks_it_is_a_note(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("## User\n\nWants tea.\n")
    (note,) = read_all(path).values()
    assert [turn.text for turn in note.turns] == ["## User\n\nWants tea.\n"]


def test_a_folder_is_read_without_what_is_hidden_and_with_its_times(tmp_path):
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / ".obsidian" / "a.md").write_text("hidden")
    (folder / "b.md").write_text("seen")
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    (folder / "link.md").symlink_to(tmp_path / "elsewhere.md")
    os.utime(folder / "b.md", (1_717_236_000, 1_717_236_000))
    found = read_all(folder)
    assert list(found) == ["b.md"]
    assert found["b.md"].turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)


def test_a_link_within_a_zip_is_left_alone(tmp_path):
    link = zipfile.ZipInfo("vault/link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = tmp_path / "vault.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/hostname")
        archive.writestr("vault/b.md", "seen")
    assert list(read_all(path)) == ["b.md"]


def test_a_changed_note_is_another_message(tmp_path):
    path = tmp_path / "a.md"
    ids = []
    for text in ("one", "two", "one"):
        path.write_text(text)
        (note,) = read_all(path).values()
        ids.append((note.transcript.external_id, note.turns[0].external_id))
    assert ids[0] == ids[2] != ids[1]
    assert ids[0][0] == ids[1][0]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        ("\ufeffcafé".encode("utf-16-le"), "café"),
        (b"\xe9t\xe9", None),
    ],
)
def test_other_encodings_are_read_or_counted(tmp_path, content, text):
    path = tmp_path / "a.md"
    path.write_bytes(content)
    (note,) = read_all(path).values()
    assert [turn.text for turn in note.turns] == ([text] if text else [])
    assert dict(note.skipped) == ({} if text else {NO_TEXT: 1})


def test_an_export_with_a_readme_is_still_that_export(tmp_path):
    talks = [chatgpt_talk("Q")]
    zipped = {"conversations.json": talks, "README.md": "# Read me"}
    assert detect(write_zip(tmp_path / "a.zip", zipped)) is CHATGPT
    folder = tmp_path / "export"
    folder.mkdir()
    write_json(folder / "conversations.json", talks)
    (folder / "notes.md").write_text("x")
    assert detect(folder) is CHATGPT
    assert detect(write_lines(tmp_path / "conversations.json", [plain("Q")])) is PLAIN

from __future__ import annotations

from datetime import UTC, datetime

from palace.transfer.importers import CHATGPT, detect, read, text_files
from palace.transfer.importers.text_files import NO_TEXT
from tests.transfer.importers.exports import chatgpt_talk, write_json, write_zip


def test_a_file_is_one_note_to_the_byte(tmp_path):
    path = tmp_path / "diary.txt"
    path.write_bytes(b"[ ] Salt\r\n[x] Pepper \n")
    assert detect(path) is text_files.NOTE_FORMAT
    (found,) = read(path, text_files.NOTE_FORMAT)
    assert [turn.text for turn in found.turns] == ["[ ] Salt\r\n[x] Pepper \n"]
    assert (found.transcript.source, found.transcript.title) == ("text", "diary")


def test_a_folder_of_notes_is_read_and_what_is_no_text_is_counted(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("Salt")
    (folder / "b.TXT").write_bytes(b"\xff\x00")
    (folder / "settings.json").write_text("{}")
    assert detect(folder) is text_files.NOTE_FORMAT
    first, second = read(folder, text_files.NOTE_FORMAT)
    assert first.transcript.external_id == "a.txt"
    assert dict(second.skipped) == {NO_TEXT: 1}


def test_a_note_in_a_zip_has_its_time(tmp_path):
    path = write_zip(tmp_path / "notes.zip", {"a.txt": "Salt"})
    (found,) = read(path, detect(path))
    assert found.turns[0].said_at.tzinfo is UTC
    assert found.turns[0].said_at <= datetime.now(UTC)


def test_an_export_with_the_wrong_name_is_an_export(tmp_path):
    assert detect(write_json(tmp_path / "a.txt", [chatgpt_talk("Q")])) is CHATGPT

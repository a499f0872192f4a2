from __future__ import annotations

from datetime import UTC, datetime

from palace.transfer.importers import claude, detect, read
from palace.transfer.importers.conversation import UNKNOWN_FORM
from tests.transfer.importers.exports import write_json, write_zip

PROJECT = {
    "uuid": "p-1",
    "name": "Ferry times",
    "description": "All piers of Split.",
    "is_private": True,
    "prompt_template": "Answer in one line.",
    "created_at": "2024-06-01T10:00:00.000000+00:00",
    "creator": {"uuid": "u", "full_name": "Ana"},
    "docs": [
        {"uuid": "d-1", "filename": "pier.md", "content": " Pier 3\r\n", "created_at": None},
        {"uuid": "d-2", "filename": "map.png", "content": None},
    ],
}


def test_a_project_is_its_description_instructions_and_documents(tmp_path):
    path = write_json(tmp_path / "projects.json", [PROJECT])
    assert detect(path) is claude.PROJECTS_FORMAT
    (found,) = read(path, claude.PROJECTS_FORMAT)
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("user", "All piers of Split."),
        ("system", "Answer in one line."),
        ("user", " Pier 3\r\n"),
    ]
    assert found.turns[2].metadata == {"filename": "pier.md"}
    assert found.turns[2].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert (found.transcript.external_id, found.transcript.title) == ("p-1", "Ferry times")
    assert dict(found.skipped) == {UNKNOWN_FORM: 1}


def test_newer_exports_have_a_file_of_each(tmp_path):
    path = write_json(tmp_path / "p-1.json", PROJECT)
    assert detect(path) is claude.PROJECTS_FORMAT


def test_a_folder_of_them_is_read(tmp_path):
    names = ("0b7e6a52-4a5b-4c7e-9f0e-1d2c3b4a5f60", "1b7e6a52-4a5b-4c7e-9f0e-1d2c3b4a5f60")
    members = {f"projects/{name}.json": {**PROJECT, "uuid": name} for name in names}
    path = write_zip(tmp_path / "projects.zip", members)
    assert detect(path) is claude.PROJECTS_FORMAT
    assert len(list(read(path, claude.PROJECTS_FORMAT))) == 2

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from palace.transfer.importers import detect, messengers, read
from palace.transfer.importers.messengers import ONLY_FILES, TELEGRAM_NOTICE
from tests.transfer.importers.chat_exports import telegram as chat
from tests.transfer.importers.chat_exports import telegram_message as message
from tests.transfer.importers.exports import write_json, write_zip


def read_all(path):
    assert detect(path) is messengers.TELEGRAM_FORMAT
    return list(read(path, messengers.TELEGRAM_FORMAT))


def words(found):
    return [(turn.speaker, turn.text) for turn in found.turns]


def test_a_chats_day_is_a_conversation(tmp_path):
    path = tmp_path / "result.json"
    item = chat(
        message(" Which pier?\r\n"),
        message("Pier 3.", key=2, at="1717236060", sender="Ben"),
        message("Thanks", key=3, at="1717322460"),
    )
    path.write_text(json.dumps(item, indent=1, ensure_ascii=False))
    first, second = read_all(path)
    assert words(first) == [("Ana", " Which pier?\r\n"), ("Ben", "Pier 3.")]
    assert (first.transcript.external_id, first.transcript.title) == (
        "7/2024-06-01",
        "Ben, 2024-06-01",
    )
    assert first.turns[1].said_at == datetime(2024, 6, 1, 10, 1, tzinfo=UTC)
    assert second.transcript.external_id == "7/2024-06-02"


def test_all_chats_of_an_account_are_read(tmp_path):
    account = {
        "about": "Here is the data you requested.",
        "personal_information": {"user_id": 1, "first_name": "Ana"},
        "contacts": {"list": [{"first_name": "Ben"}]},
        "chats": {"about": "…", "list": [chat(message("A")), chat(message("B"), chat_id=8)]},
        "left_chats": {"list": [chat(message("C"), chat_id=9, name=None)]},
    }
    path = write_zip(tmp_path / "export.zip", {"DataExport/result.json": account})
    found = read_all(path)
    assert [words(each)[0][1] for each in found] == ["A", "B", "C"]
    assert found[2].transcript.title == "personal chat, 2024-06-01"


def test_links_are_shown_and_what_has_no_words_is_counted(tmp_path):
    linked = ["See ", {"type": "text_link", "text": "the times", "href": "https://example.org"}]
    item = chat(
        message(linked, forwarded_from="Cleo"),
        message("", key=2, photo="photos/1.jpg"),
        message("The pier", key=3, photo="photos/2.jpg"),
        {"id": 4, "type": "service", "action": "phone_call", "text": ""},
        message("old", key=5) | {"date_unixtime": None},
    )
    (found,) = read_all(write_json(tmp_path / "a.json", item))
    assert words(found) == [
        ("Ana", "See the times (https://example.org)"),
        ("Ana", "The pier"),
        ("Ana", "old"),
    ]
    assert found.turns[0].metadata == {"telegram": {"forwarded_from": "Cleo"}}
    assert found.turns[2].said_at == datetime(2024, 6, 1, 12, tzinfo=UTC)
    assert dict(found.skipped) == {TELEGRAM_NOTICE: 1, ONLY_FILES: 1}
    assert dict(found.left_out) == {"file": 2}


def test_an_export_that_breaks_off_gets_a_sentence(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(chat(message("A"), message("B", key=2)))[:-40])
    with pytest.raises(BadImport, match="breaks off"):
        read_all(path)

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from palace.transfer.importers import detect, read, team_chats
from palace.transfer.importers.team_chats import DISCORD_NOTICE, DISCORD_ONLY_FILES
from tests.transfer.importers.chat_exports import discord as channel
from tests.transfer.importers.chat_exports import discord_message as message
from tests.transfer.importers.exports import write_json


def read_all(path):
    assert detect(path) is team_chats.DISCORD_FORMAT
    return list(read(path, team_chats.DISCORD_FORMAT))


def test_a_channels_day_is_a_conversation(tmp_path):
    bot = {"id": "9", "name": "Timetable", "nickname": None, "isBot": True}
    item = channel(
        message(" Which pier?\r\n"),
        message("Pier 3.", key="2", author=bot, reference={"messageId": "1"}),
        message("Thanks", key="3", at="2024-06-02T00:30:00+02:00"),
        message("Late", key="4", at="2024-06-02T08:00:00+02:00", name=None),
    )
    first, second = read_all(write_json(tmp_path / "ferries.json", item))
    assert [(turn.role, turn.speaker, turn.text) for turn in first.turns] == [
        ("user", "Ana", " Which pier?\r\n"),
        ("tool", "Timetable", "Pier 3."),
        ("user", "Ana", "Thanks"),
    ]
    assert first.turns[1].metadata == {"discord": {"reply_to": "1"}}
    assert first.transcript.external_id == "2/2024-06-01"
    assert first.transcript.title == "Harbour / ferries, 2024-06-01"
    assert first.turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert [turn.speaker for turn in second.turns] == ["ana.p"]


def test_notices_and_messages_without_words_are_counted(tmp_path):
    item = channel(
        message("Pinned a message.", type="ChannelPinnedMessage"),
        message("", key="2", attachments=[{"fileName": "pier.png"}], stickers=[{"name": "Hi"}]),
        message("Look", key="3", embeds=[{}]),
    )
    (found,) = read_all(write_json(tmp_path / "ferries.json", item))
    assert [turn.text for turn in found.turns] == ["Look"]
    assert dict(found.skipped) == {DISCORD_NOTICE: 1, DISCORD_ONLY_FILES: 1}
    assert dict(found.left_out) == {"file": 1, "sticker": 1, "preview of a link": 1}


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = write_json(tmp_path / "ferries.json", channel(message("Q")))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(BadImport, match="breaks off"):
        read_all(path)

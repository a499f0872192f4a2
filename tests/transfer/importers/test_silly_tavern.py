from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace.transfer.importers import detect, read, self_hosted
from palace.transfer.importers.json_stream import BROKEN_LINE
from tests.transfer.importers.chat_exports import silly_tavern as message
from tests.transfer.importers.chat_exports import silly_tavern_head as head
from tests.transfer.importers.exports import write_lines


def read_one(path):
    assert detect(path) is self_hosted.SILLY_TAVERN_FORMAT
    (found,) = read(path, self_hosted.SILLY_TAVERN_FORMAT)
    return found


@pytest.mark.parametrize("named", ["Ferryman", "unused"])
def test_a_file_is_a_chat_with_a_character(tmp_path, named):
    lines = [
        head(character_name=named),
        message(" Which pier?\r\n"),
        message(
            "Pier 3.", by_user=False, swipes=["Pier 2.", "Pier 3."], extra={"reasoning": "Hm."}
        ),
        message("The day ends.", by_user=False, is_system=True),
    ]
    path = write_lines(tmp_path / "Ferryman - 2024-6-1@10h00m00s.jsonl", lines)
    path.write_text(path.read_text() + '{"name": "An')
    found = read_one(path)
    assert [(turn.role, turn.speaker, turn.text) for turn in found.turns] == [
        ("user", "Ana", " Which pier?\r\n"),
        ("assistant", "Ferryman", "Pier 3."),
        ("system", "Ferryman", "The day ends."),
    ]
    assert found.transcript.external_id == "Ferryman - 2024-6-1@10h00m00s"
    assert found.transcript.agent == "Ferryman"
    assert dict(found.left_out) == {"other answer": 1, "thinking": 1}
    assert dict(found.skipped) == {BROKEN_LINE: 1}


@pytest.mark.parametrize(
    "stamp",
    [
        *("2024-06-01T10:00:00.000Z", "2024-6-1 @10h 00m 00s 123ms", "2024-6-1@10h00m00s"),
        *("June 1, 2024 10:00am", 1_717_236_000_000, 1_717_236_000),
    ],
)
def test_the_times_of_all_versions_are_known(tmp_path, stamp):
    path = write_lines(tmp_path / "a.jsonl", [head(), message("Q", at=stamp)])
    assert read_one(path).turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)


def test_ids_stay_where_an_earlier_message_is_deleted_and_equal_ones_are_apart(tmp_path):
    said = [message(text) for text in ("One", "Two", "Two", "Three")]
    before, after = (
        {turn.external_id: turn.text for turn in read_one(path).turns}
        for path in (
            write_lines(tmp_path / "a.jsonl", [head(), *said]),
            write_lines(tmp_path / "b.jsonl", [head(), *said[1:], message("Four")]),
        )
    )
    assert list(before.values()) == ["One", "Two", "Two", "Three"]
    assert after.items() - before.items() == {
        (key, text) for key, text in after.items() if text == "Four"
    }

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palace.transfer.importers import detect, messengers, read
from palace.transfer.importers.messengers import NO_WORDS, WHATSAPP_NOTICE
from tests.transfer.importers.exports import write_zip

NAME = "WhatsApp Chat with Ben.txt"


def read_all(tmp_path, *lines, name=NAME):
    path = tmp_path / name
    path.write_bytes("\n".join(lines).encode())
    assert detect(path) is messengers.WHATSAPP_FORMAT
    return list(read(path, messengers.WHATSAPP_FORMAT))


def words(found):
    return [(turn.speaker, turn.text) for turn in found.turns]


@pytest.mark.parametrize(
    "head",
    [
        "[31/12/2024, 21:05:09] ",
        "\u200e[31.12.24, 21:05:09] ",
        "[12/31/24, 9:05:09\u202fPM] ",
        "[31.12.2024 klo 21.05.09] ",
        "31/12/2024, 21:05 - ",
        "31.12.24, 21:05 - ",
        "12/31/24, 9:05 PM - ",
        "31/12/2024, 9:05 p. m. - ",
        "2024-12-31, 21:05 - ",
        "31-12-2024 21:05 - ",
        "31/12/2024 21:05 – ",
    ],
)
def test_dates_are_read_as_any_phone_writes_them(tmp_path, head):
    (found,) = read_all(tmp_path, f"{head}Ana: Which pier?")
    assert words(found) == [("Ana", "Which pier?")]
    said_at = found.turns[0].said_at
    assert said_at.replace(second=0) == datetime(2024, 12, 31, 21, 5, tzinfo=UTC)


def test_messages_of_many_lines_are_kept_to_the_byte(tmp_path):
    (found,) = read_all(
        tmp_path,
        "31/12/2024, 21:05 - Ana:  One: \r",
        "",
        "  two 12:30 - three\t",
        "31/12/2024, 21:06 - Ben: ok",
        "31/12/2024, 21:06 - Ben: ok",
        "",
    )
    assert words(found) == [
        ("Ana", " One: \r\n\n  two 12:30 - three\t"),
        ("Ben", "ok"),
        ("Ben", "ok"),
    ]
    ids = [turn.external_id for turn in found.turns]
    assert len(set(ids)) == 3
    assert (found.transcript.external_id, found.transcript.title) == (
        "Ben/2024-12-31",
        "Ben, 2024-12-31",
    )


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["03/04/2024", "04/04/2024", "13/04/2024"], ["2024-04-03", "2024-04-04", "2024-04-13"]),
        (["03/04/2024", "04/04/2024", "04/13/2024"], ["2024-03-04", "2024-04-04", "2024-04-13"]),
        (["03/04/2024", "02/05/2024"], ["2024-04-03", "2024-05-02"]),
        (["01/05/2024", "02/03/2024"], ["2024-01-05", "2024-02-03"]),
        (["03/04/2024"], ["2024-04-03"]),
    ],
    ids=["a day tells", "a month tells", "the order tells days", "the order tells months", "none"],
)
def test_day_and_month_are_distinguished(tmp_path, dates, days):
    found = read_all(tmp_path, *(f"{date}, 21:05 - Ana: Q" for date in dates))
    assert [each.turns[0].said_at.date().isoformat() for each in found] == days


def test_notes_and_pictures_are_counted(tmp_path):
    (found,) = read_all(
        tmp_path,
        "31/12/2024, 21:04 - Messages and calls are end-to-end encrypted.",
        '31/12/2024, 21:04 - Ana changed the subject to "Ferry: when?"',
        "31/12/2024, 21:05 - Ana: <Media omitted>",
        "31/12/2024, 21:05 - Ana: IMG-20241231-WA0001.jpg (file attached)",
        "31/12/2024, 21:05 - Ana: This message was deleted",
        "31/12/2024, 21:05 - Ana: \u200eimage omitted",
        "31/12/2024, 21:05 - Ana: <3",
    )
    assert words(found) == [("Ana", "<3")]
    assert dict(found.skipped) == {WHATSAPP_NOTICE: 2, NO_WORDS: 4}


def test_the_zip_of_an_iphone_has_the_name_of_the_chat(tmp_path):
    line = "[31.12.24, 21:05:09] \u202a~ Ana\u202c: Q"
    path = write_zip(tmp_path / "WhatsApp Chat - Ferry crew (2).zip", {"_chat.txt": line})
    assert detect(path) is messengers.WHATSAPP_FORMAT
    (found,) = read(path, messengers.WHATSAPP_FORMAT)
    assert found.transcript.title == "Ferry crew, 2024-12-31"
    assert words(found) == [("Ana", "Q")]


def test_exporting_again_gives_the_same_ids(tmp_path):
    lines = ["31/12/2024, 21:05 - Ana: ok", "31/12/2024, 21:05 - Ana: ok"]
    (before,) = read_all(tmp_path, *lines)
    (after,) = read_all(tmp_path, *lines, "31/12/2024, 21:09 - Ben: Fine.", name=f"a{NAME}")
    assert [turn.external_id for turn in after.turns][:2] == [
        turn.external_id for turn in before.turns
    ]

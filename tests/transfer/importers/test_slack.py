"""Slack's export: channels by day, threads whole, and who is who."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from language.storable import EMPTY
from palace.transfer.importers import CLAUDE, SLACK, detect, read
from palace.transfer.importers.team_chats import SLACK_NOTICE, SLACK_ONLY_FILES
from tests.transfer.importers.exports import claude, claude_message, slack, slack_message, write_zip


def read_all(path):
    assert detect(path) is SLACK
    return list(read(path, SLACK))


def imported(tmp_path, days, **more):
    return read_all(write_zip(tmp_path / "slack.zip", slack(days, **more)))


def test_a_channels_day_is_a_conversation_of_people_with_names(tmp_path):
    days = {
        "general/2024-06-01": [
            slack_message(" Which tea?\r\n"),
            slack_message("Oolong.", ts="1717236060.000200", user="U2"),
        ],
        "general/2024-06-02": [slack_message("Good morning", ts="1717322400.000100")],
    }
    first, second = imported(tmp_path, days)
    assert first.transcript.external_id == "C1/2024-06-01"
    assert first.transcript.title == "#general, 2024-06-01"
    assert [(t.speaker, t.role, t.text) for t in first.turns] == [
        ("Ana", "user", " Which tea?\r\n"),
        ("Ben Ito", "user", "Oolong."),
    ]
    assert first.turns[0].said_at == datetime(2024, 6, 1, 10, 0, 0, 100, tzinfo=UTC)
    assert first.turns[0].metadata is None
    assert second.transcript.external_id == "C1/2024-06-02"


def test_a_thread_is_one_conversation_wherever_its_replies_lie(tmp_path):
    root = "1717236000.000100"
    days = {
        "general/2024-06-01": [
            slack_message("Who rows?", thread_ts=root, reply_count=2),
            slack_message("Unrelated", ts="1717236001.000100"),
        ],
        "general/2024-06-03": [
            slack_message("I do", ts="1717408800.000100", user="U2", thread_ts=root),
            slack_message(
                "Me too", ts="1717408900.000100", thread_ts=root, subtype="thread_broadcast"
            ),
        ],
    }
    day, thread = imported(tmp_path, days)
    assert [turn.text for turn in day.turns] == ["Unrelated"]
    assert thread.transcript.external_id == f"C1/{root}"
    assert thread.transcript.title == "#general: Who rows?"
    assert [turn.text for turn in thread.turns] == ["Who rows?", "I do", "Me too"]


def test_words_are_as_slack_shows_them_and_as_it_writes_them_beside(tmp_path):
    raw = (
        "<@U2> &lt;b&gt; R&amp;D: <https://example.org/?a=1&amp;b=2|the page> in <#C1|general>, "
        "<!here>"
    )
    (day,) = imported(tmp_path, {"general/2024-06-01": [slack_message(raw)]})
    (turn,) = day.turns
    assert turn.text == (
        "@Ben Ito <b> R&D: the page (https://example.org/?a=1&b=2) in #general, @here"
    )
    assert turn.metadata == {"slack": {"text": raw}}


def test_bots_edits_and_files_are_noted(tmp_path):
    at = iter(range(100, 900, 100))
    days = {
        "general/2024-06-01": [
            slack_message("Green", ts=f"1717236000.000{next(at)}", user="U3"),
            {
                **slack_message("", ts=f"1717236000.000{next(at)}", subtype="bot_message"),
                "username": "Deploy",
                "bot_id": "B1",
                "attachments": [{"fallback": "Deployed 1.2"}],
            },
            slack_message(
                "Look",
                ts=f"1717236000.000{next(at)}",
                edited={"user": "U1", "ts": "1717236009.000000"},
                files=[{"id": "F1", "name": "tea.png"}],
            ),
            slack_message("", ts=f"1717236000.000{next(at)}", files=[{"id": "F2"}]),
            slack_message("", ts=f"1717236000.000{next(at)}"),
            slack_message(
                "<@U1> has joined", ts=f"1717236000.000{next(at)}", subtype="channel_join"
            ),
        ]
    }
    (day,) = imported(tmp_path, days)
    assert [(turn.speaker, turn.role, turn.text) for turn in day.turns] == [
        ("Build", "tool", "Green"),
        ("Deploy", "tool", "Deployed 1.2"),
        ("Ana", "user", "Look"),
    ]
    assert day.turns[2].metadata == {"slack": {"edited": "1717236009.000000", "files": ["tea.png"]}}
    assert dict(day.skipped) == {EMPTY: 1, SLACK_NOTICE: 1, SLACK_ONLY_FILES: 1}
    assert dict(day.left_out) == {"file": 2}
    assert day.message_count == 6


def test_private_talks_are_called_by_who_takes_part_and_strangers_by_their_ids(tmp_path):
    found = imported(
        tmp_path,
        {
            "D9/2024-06-01": [slack_message("Hi")],
            "mpdm-ana--ben-1/2024-06-01": [slack_message("All", user="U77")],
            "secret/2024-06-01": [slack_message("Psst")],
            "renamed/2024-06-01": [slack_message("Where?")],
        },
        **{
            "dms.json": [{"id": "D9", "members": ["U1", "U2"]}],
            "mpims.json": [{"id": "G1", "name": "mpdm-ana--ben-1", "members": ["U1", "U77"]}],
            "groups.json": [{"id": "G2", "name": "secret"}],
        },
    )
    by_id = {each.transcript.external_id: each for each in found}
    assert {key: each.transcript.title for key, each in by_id.items()} == {
        "D9/2024-06-01": "Ana, Ben Ito, 2024-06-01",
        "G1/2024-06-01": "Ana, U77, 2024-06-01",
        "G2/2024-06-01": "#secret, 2024-06-01",
        "renamed/2024-06-01": "renamed, 2024-06-01",
    }
    assert by_id["G1/2024-06-01"].turns[0].speaker == "U77"


def test_a_day_that_goes_on_in_the_next_file_is_one_conversation(tmp_path):
    days = {
        "general/2024-06-01": [slack_message("Late", ts="1717282800.000100")],
        "general/2024-06-02": [slack_message("Later", ts="1717286000.000100")],
    }
    (day,) = imported(tmp_path, days)
    assert [turn.text for turn in day.turns] == ["Late", "Later"]


def test_an_unpacked_export_is_read_as_well(tmp_path):
    folder = tmp_path / "export"
    (folder / "general").mkdir(parents=True)
    for name, content in slack({"general/2024-06-01": [slack_message("Hi")]}).items():
        (folder / name).write_text(json.dumps(content))
    (day,) = read_all(folder)
    assert day.turns[0].text == "Hi"


def test_claudes_users_are_not_slacks(tmp_path):
    members = {"conversations.json": [claude(claude_message("1", "Q"))], "users.json": []}
    assert detect(write_zip(tmp_path / "a.zip", members)) is CLAUDE


@pytest.mark.parametrize(
    ("days", "more", "sentence"),
    [
        ({"general/2024-06-01": "{oops"}, {}, r"2024-06-01\.json does not begin with a list"),
        ({"general/2024-06-01": "[{},"}, {}, r"2024-06-01\.json"),
        ({}, {"users": "{"}, r"users\.json is not valid JSON; nothing was imported"),
        ({}, {"users": {"a": 1}}, r"users\.json is no list"),
    ],
)
def test_a_broken_export_gets_a_sentence(tmp_path, days, more, sentence):
    with pytest.raises(BadImport, match=sentence):
        imported(tmp_path, days, **more)

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from language.errors import BadImport
from language.storable import EMPTY
from palace.transfer.importers import PLAIN, detect, read
from palace.transfer.importers.conversation import REPEATED, UNKNOWN_ROLE
from tests.transfer.importers.exports import plain, write_lines

DOCS = Path(__file__).resolve().parents[3] / "docs" / "importing.md"


def read_all(path):
    assert detect(path) is PLAIN
    return list(read(path, PLAIN))


def test_every_field_arrives(tmp_path):
    line = {
        "id": "harbour",
        "title": "The harbour",
        "agent": "Pilot",
        "messages": [
            {
                "id": "m1",
                "role": "user",
                "speaker": "Ana",
                "text": " When? ",
                "said_at": "2024-06-01T12:00:00+02:00",
            },
            {"role": "tool", "text": "12:40", "said_at": "2024-06-01T10:00:01"},
        ],
    }
    (found,) = read_all(write_lines(tmp_path / "a.jsonl", [line]))
    transcript = found.transcript
    assert (transcript.source, transcript.external_id) == ("plain", "harbour")
    assert (transcript.title, transcript.agent) == ("The harbour", "Pilot")
    first, second = transcript.turns
    assert (first.external_id, first.role, first.speaker, first.text) == (
        "m1",
        "user",
        "Ana",
        " When? ",
    )
    assert first.said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert (second.external_id, second.role, second.speaker) == ("1", "tool", "")
    assert second.said_at == datetime(2024, 6, 1, 10, 0, 1, tzinfo=UTC)


def test_the_example_in_the_documentation_is_read_whole(tmp_path):
    (example,) = re.findall(r"```jsonl\n(.*?)```", DOCS.read_text(), re.DOTALL)
    path = tmp_path / "example.jsonl"
    path.write_text(example)
    found = read_all(path)
    assert len(found) == len(example.splitlines())
    assert all(each.turns and not each.skipped for each in found)


def test_blank_lines_crlf_and_a_byte_order_mark_do_not_matter(tmp_path):
    lines = [json.dumps(plain("A", conversation_id="1")), "", json.dumps(plain("B\r\n"))]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert [turn.text for each in read_all(path) for turn in each.turns] == ["A", "B\r\n"]


def test_a_separator_that_only_unicode_knows_does_not_end_a_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(plain("one\u2028two\x85three"), ensure_ascii=False))
    (found,) = read_all(path)
    assert found.turns[0].text == "one\u2028two\x85three"


def test_one_id_twice_is_two_messages_unless_they_are_the_same(tmp_path):
    line = plain("A", "B", "A", "C", "A")
    for message in line["messages"]:
        message["id"] = "same"
    (found,) = read_all(write_lines(tmp_path / "a.jsonl", [line]))
    assert [(turn.external_id, turn.text) for turn in found.turns] == [
        ("same", "A"),
        ("same~2", "B"),
        ("same~3", "C"),
    ]
    assert dict(found.skipped) == {REPEATED: 2}


def test_long_and_odd_ids_fit_and_stay_apart(tmp_path):
    lines = [
        plain("A", conversation_id="x" * 500 + "1"),
        plain("B", conversation_id="x" * 500 + "2"),
        plain("C", conversation_id="nul\0"),
        plain("D", conversation_id="half \ud800"),
        plain("E", conversation_id=7),
    ]
    ids = [each.transcript.external_id for each in read_all(write_lines(tmp_path / "a", lines))]
    assert len(set(ids)) == 5
    assert max(map(len, ids)) <= 200
    assert all("\0" not in each and each.encode() for each in ids)
    assert ids[-1] == "7"


def test_titles_and_names_are_made_storable(tmp_path):
    line = plain("A", title="nul\0 and \ud800", agent=5)
    line["messages"][0]["speaker"] = "An\0a"
    (found,) = read_all(write_lines(tmp_path / "a.jsonl", [line]))
    assert found.transcript.title == "nul� and ?"
    assert found.transcript.agent == ""
    assert found.turns[0].speaker == "An�a"


def test_what_is_not_kept_is_counted(tmp_path):
    line = plain("A", "", "   \n", "D")
    line["messages"][3]["role"] = "narrator"
    (found,) = read_all(write_lines(tmp_path / "a.jsonl", [line]))
    assert dict(found.skipped) == {EMPTY: 2, UNKNOWN_ROLE: 1}
    assert found.message_count == 4


def test_the_first_known_time_stands_before_it(tmp_path):
    line = plain("A", "B", "C")
    del line["messages"][0]["said_at"]
    del line["messages"][2]["said_at"]
    (found,) = read_all(write_lines(tmp_path / "a.jsonl", [line]))
    assert {turn.said_at for turn in found.turns} == {datetime(2024, 6, 1, 10, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("second_line", "sentence"),
    [
        ("{", r"Line 2 of a\.jsonl is not valid JSON at character 2; nothing was imported\."),
        ('"text"', r"Line 2 of a\.jsonl is not an object"),
        ("[]", r"Line 2 of a\.jsonl is not an object"),
        ('{"messages": []}', r'Line 2 of a\.jsonl has no "id"'),
        ('{"id": true, "messages": []}', r'Line 2 of a\.jsonl has no "id"'),
        ('{"id": "x"}', r'Line 2 of a\.jsonl has no list of "messages"'),
        ('{"id": "x", "messages": ["hello"]}', r"message that is not an object .*number 0"),
        ('{"id": "x", "messages": [{"role": "user"}]}', r'\(number 0\) without a "text"'),
        (
            '{"id": "x", "messages": [{"role": "user", "text": "a", "said_at": "noon"}]}',
            r"\(number 0\) whose said_at is no ISO 8601 time",
        ),
        ("[" * 100_000, r"Line 2 of a\.jsonl is nested too deeply"),
        ('{"id": "\xff"}', r"Line 2 of a\.jsonl is not UTF-8 at byte 9"),
    ],
)
def test_a_broken_line_is_named_with_its_number(tmp_path, second_line, sentence):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(plain("A")).encode() + b"\n" + second_line.encode("latin-1"))
    with pytest.raises(BadImport, match=sentence):
        list(read(path, PLAIN))

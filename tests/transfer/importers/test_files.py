"""How a file is recognised and opened, and the sentence one gets where that fails."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest

from language.errors import BadImport
from palace.transfer.importers import CHATGPT, CLAUDE, PLAIN, detect, files, json_stream, read
from tests.transfer.importers.exports import (
    chatgpt_talk,
    claude,
    claude_message,
    plain,
    write_json,
    write_lines,
    write_zip,
)


def ids(path):
    return [each.transcript.external_id for each in read(path, detect(path))]


def sentence(path):
    with pytest.raises(BadImport) as caught:
        ids(path)
    return str(caught.value)


def test_the_content_decides_not_the_name(tmp_path):
    assert detect(write_json(tmp_path / "a.txt", [chatgpt_talk("Q")])) is CHATGPT
    assert detect(write_json(tmp_path / "b.jsonl", [claude(claude_message("1", "Q"))])) is CLAUDE
    assert detect(write_lines(tmp_path / "conversations.json", [plain("Q")])) is PLAIN


def test_the_zip_as_it_came_is_read_with_all_its_parts_in_order(tmp_path):
    path = write_zip(
        tmp_path / "export.zip",
        {
            "export/conversations-001.json": [chatgpt_talk("C", conversation_id="third")],
            "export/conversations-000.json": [
                chatgpt_talk("A", conversation_id="first"),
                chatgpt_talk("B", conversation_id="second"),
            ],
            "export/user.json": {"email": "ana@example.org"},
            "export/chat.html": "<html></html>",
            "__MACOSX/export/._conversations-000.json": "\0\1",
        },
    )
    assert detect(path) is CHATGPT
    assert ids(path) == ["first", "second", "third"]


def test_a_part_of_a_zip_may_be_empty(tmp_path):
    path = write_zip(
        tmp_path / "export.zip",
        {
            "conversations-000.json": [],
            "conversations-001.json": "",
            "conversations-002.json": [claude(claude_message("1", "Q"))],
        },
    )
    assert detect(path) is CLAUDE
    assert ids(path) == ["k-1"]


def test_gzip_and_lines_in_a_zip_are_unpacked_on_the_way(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(json.dumps([chatgpt_talk("Q")]).encode()))
    assert ids(path) == ["c-1"]
    assert ids(write_zip(tmp_path / "a.zip", {"talks.jsonl": plain("Q")})) == ["p-1"]


def test_reading_says_how_far_it_is(tmp_path):
    path = write_json(tmp_path / "a.json", [chatgpt_talk("Q" * 3_000_000)])
    steps = []
    assert len(list(read(path, CHATGPT, progress=steps.append))) == 1
    assert steps == sorted(steps)
    assert steps[-1] == path.stat().st_size


def test_a_conversation_longer_than_the_window_is_read_whole(tmp_path):
    texts = ["ä" * 2_500_000, "short", "🙂" * 700_000 + "\r\n "]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([chatgpt_talk(*texts)], ensure_ascii=False))
    (found,) = read(path, CHATGPT)
    assert [turn.text for turn in found.turns] == texts


def test_many_conversations_come_one_by_one_and_in_order(tmp_path):
    talks = [chatgpt_talk("Q" * (n % 977), "A", conversation_id=f"c{n}") for n in range(3000)]
    assert ids(write_json(tmp_path / "a.json", talks)) == [f"c{n}" for n in range(3000)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_where_the_window_ends_makes_no_difference(tmp_path, chunk):
    talks = [[chatgpt_talk("naïve 🙂", '\\ud83d\\ude00 "x"', conversation_id="a")], 12.5, -3e2]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(talks, ensure_ascii=False, indent=1))
    with path.open("rb") as stream:
        assert list(json_stream.list_items(files.Part("a", stream), chunk=chunk)) == talks


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "holds no conversations"),
        (b" \n ", "holds no conversations"),
        (b"[]", "holds no conversations"),
        (b"<html>", "is a web page; give the conversations.json"),
        (b"Dear diary", "is no export we know: it is not JSON"),
        (b"\x89PNG\r\n", "is no export we know: it is not text, but a picture"),
        ('[{"title": "é"}]'.encode("utf-16"), "is text in UTF-16, and JSON is read in UTF-8 only."),
        ('[{"title": "é"}]'.encode("utf-16-le"), "save it with the encoding UTF-8"),
        ('{"title": "é"}'.encode("utf-16-be"), "save it with the encoding UTF-8"),
        (b"GIF89a\0", "is no export we know: it is not text, but a picture"),
        (b"[1, 2]", "is no export we know"),
        (b'[{"a": 1}]', "is no export we know"),
        (b'[{"id": "x", "messages": []}]', "each is a line of its own"),
        (b'{"id": "x", "mapping": {}}', "holds a single conversation; give the whole export"),
        (b'{"settings": true}', 'has no "id"'),
        (b'[{"mapping": {}}', "breaks off (near byte 16)"),
        (b'[{"mapping": {}}, {"mapp', "breaks off"),
        (b'[{"mapping": {}} {}]', "is not valid JSON: '{' is out of place (near byte 18)"),
        (b'[{"mapping": {}}] x', "goes on after its list has ended"),
        (b'[{"mapping": {}}, 7]', "Conversation 2 of a.bin is not an object"),
        (b'[{"mapping": {}}, \xff]', "is not UTF-8 text"),
        (b'[{"mapping": {}}, {"title": "\xff"}]', "is not UTF-8 text"),
        (b"[" * 200_000, "is nested too deeply"),
        (b"PK\x03\x04 and nothing more", "is damaged or was cut off"),
        (b"\x1f\x8b and nothing more", "is damaged or was cut off"),
        (gzip.compress(b'[{"mapping": {}}]' * 50, mtime=0)[:-20], "is damaged or was cut off"),
    ],
)
def test_a_wrong_or_broken_file_gets_a_sentence(tmp_path, content, expected):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    assert expected in sentence(path)


def test_broken_in_the_middle_of_much_is_noticed_there(tmp_path):
    talks = json.dumps([chatgpt_talk("Q" * 1000, conversation_id=f"c{n}") for n in range(3000)])
    middle = talks.index("c2000")
    path = tmp_path / "a.json"
    path.write_text(talks[:middle] + '" oops' + talks[middle:])
    said = sentence(path)
    assert "is not valid JSON" in said
    near = int(said.split("near byte ")[1].split(")")[0].replace(",", ""))
    assert abs(near - middle) < 200


def test_what_is_no_file_gets_a_sentence(tmp_path):
    assert "is an empty folder; give the zip" in sentence(tmp_path)
    assert "There is no file" in sentence(tmp_path / "gone.json")


def test_a_zip_without_conversations_says_what_is_missing(tmp_path):
    empty = write_zip(tmp_path / "a.zip", {"notes.bin": "Hi"})
    assert "a.zip holds no conversations.json or another file that we know" in sentence(empty)
    nested = write_zip(tmp_path / "b.zip", {"inner/export.ZIP": "PK"})
    assert "but another zip, inner/export.ZIP; unpack it first" in sentence(nested)


def test_a_locked_zip_says_so(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"conversations.json": [chatgpt_talk("Q")]})
    content = bytearray(path.read_bytes())
    # The first flag bit of both headers of the member means that it is encrypted.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert "is locked with a password" in sentence(path)


def test_a_flipped_byte_in_a_zip_is_noticed(tmp_path):
    talks = [chatgpt_talk(f"Question {n}", conversation_id=f"c{n}") for n in range(50)]
    path = write_zip(tmp_path / "a.zip", {"conversations.json": talks})
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    assert "a.zip" in sentence(path) or "conversations.json" in sentence(path)


@pytest.mark.some(1)
@pytest.mark.parametrize("pack", ["zip", pytest.param("gzip", marks=pytest.mark.exhaustive)])
def test_a_bomb_is_not_unpacked(tmp_path, pack):
    """A file that unpacks to a thousand times its size is given up early."""
    path = tmp_path / "bomb"
    spaces = b" " * (1 << 20)
    if pack == "zip":
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("conversations.json", "w") as member,
        ):
            member.write(b"[")
            for _ in range(300):
                member.write(spaces)
    else:
        with gzip.open(path, "wb") as member:
            member.write(b"[")
            for _ in range(300):
                member.write(spaces)
    assert path.stat().st_size < 1 << 20
    assert "far more than an export of its size; it was not read" in sentence(path)


def test_one_conversation_of_absurd_size_is_refused(tmp_path):
    path = write_json(tmp_path / "a.json", [chatgpt_talk("Q"), chatgpt_talk("Q" * (9 << 20))])
    with path.open("rb") as stream:
        items = json_stream.list_items(files.Part("a.json", stream), largest=4 << 20)
        assert next(items)["id"] == "c-1"
        with pytest.raises(BadImport, match="holds a conversation of more than 4 MB"):
            next(items)
    path = write_lines(tmp_path / "a.jsonl", [plain("Q"), plain("Q" * (9 << 20))])
    with path.open("rb") as stream:
        items = json_stream.line_items(files.Part("a.jsonl", stream), largest=4 << 20)
        assert next(items)[1]["id"] == "p-1"
        with pytest.raises(BadImport, match=r"Line 2 of a\.jsonl is longer than 4 MB"):
            next(items)

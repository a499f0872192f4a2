from __future__ import annotations

import json
from datetime import UTC, datetime

from palace.transfer.importers import detect, read, self_hosted
from palace.transfer.importers.self_hosted import ONLY_DETAILS
from tests.transfer.importers.chat_exports import open_webui as chat
from tests.transfer.importers.chat_exports import open_webui_message as message
from tests.transfer.importers.exports import write_json, write_zip

THOUGHT = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Hm.\n</details>\n'


def read_one(path):
    assert detect(path) is self_hosted.OPEN_WEBUI_FORMAT
    (found,) = read(path, self_hosted.OPEN_WEBUI_FORMAT)
    return found


def words(transcript):
    return [(turn.role, turn.text) for turn in transcript.turns]


def test_the_shown_path_is_the_conversation_and_others_are_branches(tmp_path):
    item = chat(
        message("a", "Which pier?"),
        message("b", "Pier 2.", role="assistant", parentId="a"),
        message("c", "Pier 3.", role="assistant", parentId="a", at=1_717_236_060),
        current="c",
    )
    found = read_one(write_json(tmp_path / "chat-export.json", [item]))
    assert words(found.transcript) == [("user", "Which pier?"), ("assistant", "Pier 3.")]
    assert [words(branch) for branch in found.branches] == [[("assistant", "Pier 2.")]]
    assert found.branches[0].external_id == "w-1#b"
    assert (found.transcript.source, found.transcript.title) == ("open-webui", "The pier")
    assert found.transcript.turns[1].said_at == datetime(2024, 6, 1, 10, 1, tzinfo=UTC)


def test_reasoning_and_tool_calls_are_cut_out_and_the_rest_is_kept(tmp_path):
    call = '<details type="tool_calls" done="true" id="1">\n<summary>Ran</summary>\n</details>\n'
    own = "<details><summary>Folded by the model</summary>\nyes</details>"
    found = read_one(
        write_json(
            tmp_path / "a.json",
            [
                chat(
                    message("a", "Q", files=[{"type": "image"}, {"type": "file"}]),
                    message("b", f"{THOUGHT}One \n{call}{own}\n two", role="assistant"),
                    message("c", THOUGHT, role="assistant"),
                    message("d", '<details type="reasoning">never closed', role="assistant"),
                )
            ],
        )
    )
    assert words(found.transcript) == [
        ("user", "Q"),
        ("assistant", f"One \n{own}\n two"),
        ("assistant", '<details type="reasoning">never closed'),
    ]
    assert dict(found.left_out) == {"thinking": 2, "tool call": 1, "image": 1, "file": 1}
    assert dict(found.skipped) == {ONLY_DETAILS: 1}


def test_a_single_chat_and_one_of_the_first_versions_are_read(tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat(message("a", "Q")), indent=2))
    assert words(read_one(path).transcript) == [("user", "Q")]
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    old = {"chat": {"title": "Old", "messages": messages}}
    found = read_one(write_json(tmp_path / "old.json", [old]))
    assert words(found.transcript) == [("user", "Q"), ("assistant", "A")]
    assert not found.branches


def test_a_zip_of_chats_is_read_file_by_file(tmp_path):
    members = {f"{key}.json": [chat(message("a", key), chat_id=key)] for key in ("one", "two")}
    path = write_zip(tmp_path / "chats.zip", members)
    assert detect(path) is self_hosted.OPEN_WEBUI_FORMAT
    assert [each.transcript.external_id for each in read(path, detect(path))] == ["one", "two"]

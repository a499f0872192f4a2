from __future__ import annotations

from datetime import UTC, datetime

from palace.transfer.importers import chatgpt, detect, read
from palace.transfer.importers.conversation import UNKNOWN_FORM
from tests.transfer.importers.chat_exports import deepseek as conversation
from tests.transfer.importers.exports import write_zip


def words(transcript):
    return [(turn.role, turn.text) for turn in transcript.turns]


def test_it_is_named_and_its_fragments_are_read(tmp_path):
    item = conversation(("1", " Which pier?\r\n"), ("2", "Pier 3."), ("3", "?"))
    nodes = item["mapping"]
    nodes["2"]["message"]["fragments"].insert(0, {"type": "THINK", "content": "Hm."})
    nodes["2"]["message"]["files"] = [{}]
    nodes["3"]["message"]["fragments"] = [{"type": "SEARCH", "results": []}]
    path = write_zip(tmp_path / "deepseek.zip", {"conversations.json": [item], "user.json": {}})
    assert detect(path) is chatgpt.DEEPSEEK_FORMAT
    (found,) = read(path, chatgpt.DEEPSEEK_FORMAT)
    assert words(found.transcript) == [("user", " Which pier?\r\n"), ("assistant", "Pier 3.")]
    assert (found.transcript.external_id, found.transcript.title) == ("d-1", "The pier")
    assert found.turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert dict(found.left_out) == {"thinking": 1, "file": 1, "search": 1}
    assert dict(found.skipped) == {UNKNOWN_FORM: 1}


def test_another_answer_is_another_branch(tmp_path):
    item = conversation(("1", "Q"), ("2", "A"), ("3", "B"))
    item["mapping"]["3"]["parent"] = "1"
    path = write_zip(tmp_path / "a.zip", {"conversations.json": [item]})
    (found,) = read(path, detect(path))
    assert words(found.transcript) == [("user", "Q"), ("user", "B")]
    assert [words(branch) for branch in found.branches] == [[("assistant", "A")]]

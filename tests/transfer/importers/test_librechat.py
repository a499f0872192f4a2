from __future__ import annotations

import pytest

from palace.transfer.importers import detect, read, self_hosted
from palace.transfer.importers.self_hosted import FAILED, ONLY_PIECES
from tests.transfer.importers.chat_exports import librechat as export
from tests.transfer.importers.chat_exports import librechat_message as message
from tests.transfer.importers.exports import write_json


def read_one(path):
    assert detect(path) is self_hosted.LIBRECHAT_FORMAT
    (found,) = read(path, self_hosted.LIBRECHAT_FORMAT)
    return found


def words(transcript):
    return [(turn.role, turn.text) for turn in transcript.turns]


def answers():
    return [
        message("b", "Pier 2.", by_user=False, parentMessageId="a"),
        message("c", "Pier 3.", by_user=False, parentMessageId="a"),
    ]


@pytest.mark.parametrize("form", ["list", "tree", "one root"])
def test_lists_and_trees_are_read_alike_the_last_answer_is_shown(tmp_path, form):
    question = message("a", " Which pier?\r\n")
    if form == "list":
        item = export(question, *answers())
    else:
        root = question | {"children": answers()}
        item = export(messagesTree=root if form == "one root" else [root])
        del item["messages"]
    found = read_one(write_json(tmp_path / "a.json", item))
    assert words(found.transcript) == [("user", " Which pier?\r\n"), ("assistant", "Pier 3.")]
    assert [words(branch) for branch in found.branches] == [[("assistant", "Pier 2.")]]
    assert (found.transcript.external_id, found.transcript.title) == ("l-1", "The pier")


def test_pieces_without_words_and_errors_are_counted(tmp_path):
    pieces = [
        {"type": "think", "think": "Hm."},
        {"type": "text", "text": "Pier 3."},
        {"type": "tool_call", "tool_call": {}},
        {"type": "text", "text": {"value": "At 21:15."}},
    ]
    found = read_one(
        write_json(
            tmp_path / "a.json",
            export(
                message("a", "", by_user=False, content=pieces),
                message("b", "", by_user=False, content=pieces[:1], parentMessageId="a"),
                message("c", "429", by_user=False, error=True, parentMessageId="b"),
            ),
        )
    )
    assert words(found.transcript) == [("assistant", "Pier 3.\n\nAt 21:15.")]
    assert dict(found.left_out) == {"thinking": 2, "tool call": 1}
    assert dict(found.skipped) == {ONLY_PIECES: 1, FAILED: 1}


def test_a_list_of_exports_is_read_as_well(tmp_path):
    items = [export(message("a", key), conversationId=key) for key in ("one", "two")]
    path = write_json(tmp_path / "a.json", items)
    assert detect(path) is self_hosted.LIBRECHAT_FORMAT
    assert [each.transcript.external_id for each in read(path, detect(path))] == ["one", "two"]

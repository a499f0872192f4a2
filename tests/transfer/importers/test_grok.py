from __future__ import annotations

from datetime import UTC, datetime

from palace.transfer.importers import chat_sites, detect, read
from palace.transfer.importers.chat_sites import ONLY_PIECES
from palace.transfer.importers.conversation import UNKNOWN_FORM, UNKNOWN_ROLE
from tests.transfer.importers.chat_exports import grok as conversation
from tests.transfer.importers.chat_exports import grok_export, grok_response
from tests.transfer.importers.exports import write_json, write_zip


def words(transcript):
    return [(turn.role, turn.text) for turn in transcript.turns]


def test_it_is_found_in_the_zip_and_its_senders_are_known(tmp_path):
    item = conversation(
        grok_response("1", " Which pier?\r\n"),
        grok_response("2", "Pier 3.", sender="grok-3", web_search_results=[{}, {}]),
        grok_response("3", "Sure.", sender="ASSISTANT", thinking_trace="Hm."),
        grok_response("4", "", file_attachments=["a-1"]),
        grok_response("5", None),
        grok_response("6", "?", sender="referee"),
    )
    folder = "ttl/30d/export_data/0b7e"
    members = {
        f"{folder}/prod-grok-backend.json": grok_export(item),
        f"{folder}/prod-mc-billing.json": {"balance": 1},
    }
    path = write_zip(tmp_path / "grok.zip", members)
    assert detect(path) is chat_sites.GROK_FORMAT
    (found,) = read(path, chat_sites.GROK_FORMAT)
    assert words(found.transcript) == [
        ("user", " Which pier?\r\n"),
        ("assistant", "Pier 3."),
        ("assistant", "Sure."),
    ]
    assert (found.transcript.external_id, found.transcript.title) == ("g-1", "The pier")
    assert found.turns[0].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert dict(found.left_out) == {"search result": 2, "thinking": 1, "file": 1}
    assert dict(found.skipped) == {ONLY_PIECES: 1, UNKNOWN_FORM: 1, UNKNOWN_ROLE: 1}


def test_another_answer_is_another_branch(tmp_path):
    item = conversation(
        grok_response("1", "Q", parent_response_id=None),
        grok_response("2", "A", parent_response_id="1", sender="assistant"),
        grok_response("3", "B", parent_response_id="1", sender="assistant"),
        leaf_response_id="2",
    )
    path = write_json(tmp_path / "a.json", grok_export(item))
    (found,) = read(path, detect(path))
    assert words(found.transcript) == [("user", "Q"), ("assistant", "A")]
    assert [words(branch) for branch in found.branches] == [[("assistant", "B")]]


def test_two_responses_of_one_id_are_both_kept(tmp_path):
    path = write_json(tmp_path / "a.json", [conversation(*[grok_response("1", t) for t in "QA"])])
    (found,) = read(path, detect(path))
    assert [turn.text for turn in found.turns] == ["Q", "A"]


def test_a_long_file_is_known_though_lists_come_before_the_responses(tmp_path):
    item = conversation(*(grok_response(str(number), "Q" * 10_000) for number in range(150)))
    item["conversation"]["asset_ids"] = ["a-1"]
    path = write_json(tmp_path / "a.json", grok_export(item))
    assert path.stat().st_size > 1 << 20
    assert detect(path) is chat_sites.GROK_FORMAT


def test_where_no_parent_is_named_each_follows_the_one_before(tmp_path):
    item = conversation(*(grok_response(key, key, parent_response_id=None) for key in "QA"))
    (found,) = read(write_json(tmp_path / "a.json", grok_export(item)), chat_sites.GROK_FORMAT)
    assert [turn.text for turn in found.turns] == ["Q", "A"]

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from language.storable import EMPTY
from palace.transfer.importers import CLAUDE, detect, read
from palace.transfer.importers.claude import ONLY_UNSPOKEN
from palace.transfer.importers.conversation import UNKNOWN_FORM, UNKNOWN_ROLE
from tests.transfer.importers.exports import claude, claude_message, write_json


@pytest.fixture
def read_one(tmp_path):
    def read_one(conversation):
        path = write_json(tmp_path / "conversations.json", [conversation])
        assert detect(path) is CLAUDE
        (only,) = read(path, CLAUDE)
        return only

    return read_one


def test_senders_texts_and_times_are_kept(read_one):
    found = read_one(
        claude(
            claude_message("1", "How long to prove?\r\n "),
            claude_message("2", "An hour.", sender="assistant", at="2024-06-01T10:00:30.5+00:00"),
            claude_message("3", "In Lisbon time", at="2024-06-01T12:30:00+01:00"),
        )
    )
    transcript = found.transcript
    assert (transcript.source, transcript.external_id, transcript.title) == (
        "claude",
        "k-1",
        "Bread",
    )
    assert [(t.external_id, t.role, t.text) for t in transcript.turns] == [
        ("1", "user", "How long to prove?\r\n "),
        ("2", "assistant", "An hour."),
        ("3", "user", "In Lisbon time"),
    ]
    assert [t.said_at for t in transcript.turns] == [
        datetime(2024, 6, 1, 10, tzinfo=UTC),
        datetime(2024, 6, 1, 10, 0, 30, 500_000, tzinfo=UTC),
        datetime(2024, 6, 1, 11, 30, tzinfo=UTC),
    ]
    assert all(t.said_at.tzinfo is UTC for t in transcript.turns)


def test_older_exports_have_only_the_text(read_one):
    message = claude_message("1", "Only text. ")
    del message["content"]
    assert [turn.text for turn in read_one(claude(message)).turns] == ["Only text. "]


def test_words_between_tool_calls_are_kept_and_the_calls_counted(read_one):
    answer = claude_message("1", "…", sender="assistant")
    answer["content"] = [
        {"type": "thinking", "thinking": "Let me see."},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_use", "name": "web_search", "input": {"query": "proving"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "…"}]},
        {"type": "text", "text": "One hour."},
        {"type": "hologram"},
    ]
    found = read_one(claude(answer))
    assert [turn.text for turn in found.turns] == ["I look it up.\n\nOne hour."]
    assert dict(found.left_out) == {
        "thinking": 1,
        "tool call": 1,
        "tool result": 1,
        "block of another kind": 1,
    }


def test_an_artifact_is_a_turn_of_its_own_when_it_is_whole(read_one):
    made = {"command": "create", "id": "loaf", "title": "Loaf", "content": "# Loaf\r\n "}
    changed = {"command": "update", "id": "loaf", "old_str": "Loaf", "new_str": "Bun"}
    answer = claude_message("1", "", sender="assistant")
    answer["content"] = [
        {"type": "tool_use", "name": "artifacts", "input": given} for given in (made, changed)
    ]
    found = read_one(claude(answer))
    (turn,) = found.turns
    assert (turn.external_id, turn.role, turn.text) == ("1/artifact/0", "assistant", "# Loaf\r\n ")
    assert turn.metadata == {"artifact": {"id": "loaf", "title": "Loaf"}}
    assert dict(found.left_out) == {"tool call": 1}
    assert not found.skipped


def test_of_an_answer_that_is_an_artifact_alone_its_placeholder_is_nothing_said(read_one):
    made = {"command": "create", "id": "loaf", "content": "# Loaf"}
    answer = claude_message("1", "This block is not supported.", sender="assistant")
    answer["content"] = [{"type": "tool_use", "name": "artifacts", "input": made}]
    found = read_one(claude(answer))
    assert [turn.text for turn in found.turns] == ["# Loaf"]
    assert not found.skipped


def test_a_pasted_text_is_a_turn_of_its_own(read_one):
    message = claude_message("1", "Shorten this.")
    message["attachments"] = [
        {"file_name": "paste.txt", "extracted_content": "A long story.\n"},
        {"file_name": "photo.heic", "extracted_content": ""},
    ]
    message["files"] = [{"file_name": "plan.png"}]
    found = read_one(claude(message))
    assert [(turn.external_id, turn.role, turn.text) for turn in found.turns] == [
        ("1", "user", "Shorten this."),
        ("1/0", "user", "A long story.\n"),
    ]
    assert dict(found.left_out) == {"file": 2}


def test_messages_that_say_nothing_are_skipped_each_with_its_reason(read_one):
    no_words = claude_message("2", "", sender="assistant")
    no_words["content"] = [{"type": "tool_use", "name": "search", "input": {}}]
    found = read_one(
        claude(
            claude_message("1", ""),
            no_words,
            claude_message("3", "Boo", sender="ghost"),
            "not a message",
        )
    )
    assert found.turns == []
    assert dict(found.skipped) == {
        EMPTY: 1,
        ONLY_UNSPOKEN: 1,
        UNKNOWN_ROLE: 1,
        UNKNOWN_FORM: 1,
    }


def test_without_ids_the_place_in_the_conversation_is_the_id(read_one):
    messages = [claude_message(None, "A"), claude_message(None, "B", sender="assistant")]
    assert [turn.external_id for turn in read_one(claude(*messages)).turns] == ["0", "1"]


def test_a_message_without_a_time_has_the_one_before_its(read_one):
    found = read_one(
        claude(
            claude_message("1", "A", at=None),
            claude_message("2", "B", at="2024-06-02T10:00:00Z"),
            claude_message("3", "C", at="soon"),
        )
    )
    assert [turn.said_at for turn in found.turns] == [
        datetime(2024, 6, 1, 9, 59, tzinfo=UTC),
        datetime(2024, 6, 2, 10, tzinfo=UTC),
        datetime(2024, 6, 2, 10, tzinfo=UTC),
    ]


def test_messages_that_are_no_list_are_named(tmp_path):
    path = write_json(tmp_path / "c.json", [claude(), {"uuid": "x", "chat_messages": {}}])
    with pytest.raises(BadImport, match=r'Conversation 2 of c.json .* "chat_messages" is no list'):
        list(read(path, CLAUDE))

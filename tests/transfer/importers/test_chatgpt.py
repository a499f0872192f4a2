from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from language.errors import BadImport
from language.storable import EMPTY, UNSTORABLE
from palace.transfer.importers import CHATGPT, detect, read
from palace.transfer.importers.chatgpt import HIDDEN, INSTRUCTIONS, ONLY_PIECES, THINKING
from palace.transfer.importers.conversation import UNKNOWN_FORM, UNKNOWN_ROLE
from tests.transfer.importers.exports import STARTED, chatgpt, chatgpt_talk, root, said, write_json

START = datetime.fromtimestamp(STARTED, UTC)


@pytest.fixture
def read_one(tmp_path):
    def read_one(conversation):
        path = write_json(tmp_path / "conversations.json", [conversation])
        assert detect(path) is CHATGPT
        (only,) = read(path, CHATGPT)
        return only

    return read_one


def texts(transcript):
    return [turn.text for turn in transcript.turns]


def test_the_path_to_the_current_node_is_the_conversation(read_one):
    found = read_one(chatgpt_talk("Which tea?", "Oolong.", "Thanks!", title="Tea"))
    transcript = found.transcript
    assert (transcript.source, transcript.external_id, transcript.title) == (
        "chatgpt",
        "c-1",
        "Tea",
    )
    assert texts(transcript) == ["Which tea?", "Oolong.", "Thanks!"]
    assert [turn.role for turn in transcript.turns] == ["user", "assistant", "user"]
    assert [turn.external_id for turn in transcript.turns] == ["c-1-m0", "c-1-m1", "c-1-m2"]
    assert [turn.said_at for turn in transcript.turns] == [
        START + timedelta(minutes=minute) for minute in range(3)
    ]
    assert found.branches == ()
    assert found.skipped == ()


def test_other_branches_are_kept_once_each(read_one):
    """
    q1 ─ a1 ─ q2 ─ a2        (an early answer, and how it went on)
       └ b1 ─ q3 ─ b3 ← current
              └ c3          (an answer regenerated)
    """
    found = read_one(
        chatgpt(
            root(),
            said("q1", "Q1", parent="root"),
            said("a1", "A1", parent="q1", role="assistant"),
            said("q2", "Q2", parent="a1"),
            said("a2", "A2", parent="q2", role="assistant"),
            said("b1", "B1", parent="q1", role="assistant"),
            said("q3", "Q3", parent="b1"),
            said("c3", "C3", parent="q3", role="assistant"),
            said("b3", "B3", parent="q3", role="assistant"),
            current="b3",
            title="Tea",
        )
    )
    assert texts(found.transcript) == ["Q1", "B1", "Q3", "B3"]
    assert {each.external_id: texts(each) for each in found.branches} == {
        "c-1#a2": ["A1", "Q2", "A2"],
        "c-1#c3": ["C3"],
    }
    assert {each.title for each in found.branches} == {"Tea (another branch)"}
    assert found.message_count == 8


def test_without_a_current_node_the_last_children_are_followed(read_one):
    conversation = chatgpt(
        root(),
        said("q", "Q", parent="root"),
        said("old", "Old", parent="q", role="assistant"),
        said("new", "New", parent="q", role="assistant"),
        current="nowhere",
    )
    assert texts(read_one(conversation).transcript) == ["Q", "New"]
    del conversation["current_node"]
    assert texts(read_one(conversation).transcript) == ["Q", "New"]


def test_a_tree_with_a_ring_or_a_missing_parent_still_gives_every_message(read_one):
    found = read_one(
        chatgpt(
            said("a", "A", parent="b"),
            said("b", "B", parent="a"),
            said("c", "C", parent="gone"),
            current="c",
        )
    )
    assert texts(found.transcript) == ["C"]
    assert sorted(turn.text for turn in found.turns) == ["A", "B", "C"]


@pytest.mark.parametrize(
    "text",
    [
        "  two spaces before, three after   ",
        "line\r\nline\rline\nline",
        "\ttabs\tand\vothers\f\n",
        "\n\n\nafter empty lines\n\n",
        "naïve café, 你好, 🙂👩‍👩‍👧, e\u0301 \u2028 \u00a0 \ufeff",
        '"quotes" and \\backslashes\\ \\ud800 \\n',
        "\x01\x1f\x7f\x85",
    ],
)
def test_text_is_kept_to_the_byte(read_one, text):
    (turn,) = read_one(chatgpt_talk(text)).turns
    assert turn.text.encode() == text.encode()


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d of a smile", "\udc00\ud83d"])
def test_text_that_cannot_be_stored_is_skipped_not_mended(read_one, text):
    found = read_one(chatgpt_talk("before", text, "after"))
    assert texts(found.transcript) == ["before", "after"]
    assert found.skipped == ((UNSTORABLE, 1),)


def test_messages_that_say_nothing_are_skipped_each_with_its_reason(read_one):
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        root(),
        said("system", "", parent="root", role="system"),
        said("secret", "You are …", parent="system", role="system", metadata=hidden),
        said(
            "about me",
            "",
            parent="secret",
            content={"content_type": "user_editable_context", "user_profile": "I bake."},
        ),
        said("q", "Q", parent="about me"),
        said(
            "thoughts",
            "",
            parent="q",
            role="assistant",
            content={"content_type": "thoughts", "thoughts": [{"content": "Hm."}]},
        ),
        said("stranger", "Boo", parent="thoughts", role="ghost"),
        said("odd", "", parent="stranger", content={"content_type": "hologram", "light": 1}),
        said("none", "", parent="odd", content=None),
        said("a", "A", parent="none", role="assistant"),
    ]
    found = read_one(chatgpt(*nodes, current="a"))
    assert texts(found.transcript) == ["Q", "A"]
    assert dict(found.skipped) == {
        EMPTY: 1,
        HIDDEN: 1,
        INSTRUCTIONS: 1,
        THINKING: 1,
        UNKNOWN_ROLE: 1,
        UNKNOWN_FORM: 2,
    }
    assert found.message_count == 9


def test_images_are_counted_and_never_become_words(read_one):
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    spoken = {"content_type": "audio_transcription", "text": "Said aloud.", "direction": "in"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://y"}
    found = read_one(
        chatgpt(
            root(),
            said(
                "q",
                "",
                parent="root",
                content={"content_type": "multimodal_text", "parts": [image, "What is ", "this?"]},
            ),
            said(
                "only",
                "",
                parent="q",
                content={"content_type": "multimodal_text", "parts": [image]},
            ),
            said(
                "voice",
                "",
                parent="only",
                content={"content_type": "multimodal_text", "parts": [spoken, sound]},
            ),
            current="voice",
        )
    )
    assert texts(found.transcript) == ["What is this?", "Said aloud."]
    assert dict(found.skipped) == {ONLY_PIECES: 1}
    assert dict(found.left_out) == {"image": 2, "sound": 1}


def test_code_and_its_output_are_the_tools(read_one):
    found = read_one(
        chatgpt(
            root(),
            said("q", "Add.", parent="root"),
            said(
                "code",
                "",
                parent="q",
                role="assistant",
                recipient="python",
                content={"content_type": "code", "language": "python", "text": "print(1 + 1)\n"},
            ),
            said(
                "output",
                "",
                parent="code",
                role="tool",
                name="python",
                content={"content_type": "execution_output", "text": "2\n"},
            ),
            said("search", "query", parent="output", role="assistant", recipient="browser"),
            said("a", "Two.", parent="search", role="assistant"),
            current="a",
        )
    )
    assert [(turn.role, turn.text, turn.speaker) for turn in found.turns] == [
        ("user", "Add.", ""),
        ("tool", "print(1 + 1)\n", ""),
        ("tool", "2\n", "python"),
        ("tool", "query", ""),
        ("assistant", "Two.", ""),
    ]


def test_a_message_without_a_time_has_the_one_before_its(read_one):
    found = read_one(
        chatgpt(
            root(),
            said("q", "Q", parent="root", at=None),
            said("a", "A", parent="q", role="assistant", at=STARTED + 90),
            said("r", "R", parent="a", at=0),
            said("branch", "B", parent="a", at=None),
            said("updated", "U", parent="r", at=None, update_time=STARTED + 99),
            current="updated",
        )
    )
    seconds = {t.external_id: (t.said_at - START).total_seconds() for t in found.turns}
    assert seconds == {"q": 0, "a": 90, "r": 90, "branch": 90, "updated": 99}


def test_without_any_time_it_was_said_by_the_time_of_the_export(read_one, tmp_path):
    found = read_one(
        chatgpt(root(), said("q", "Q", parent="root", at=None), current="q", created=None)
    )
    written = (tmp_path / "conversations.json").stat().st_mtime
    assert found.turns[0].said_at == datetime.fromtimestamp(written, UTC)


@pytest.mark.parametrize("time", ["yesterday", -1e300, 1e300, [], {}, True])
def test_a_time_that_is_none_is_like_a_missing_one(read_one, time):
    found = read_one(chatgpt(root(), said("q", "Q", parent="root", at=time), current="q"))
    assert found.turns[0].said_at == START


def test_a_conversation_of_the_first_year_has_no_id_and_gets_a_lasting_one(read_one):
    first = chatgpt_talk("Q", "A", conversation_id=None)
    later = chatgpt_talk("Q", "A", "and another", conversation_id=None)
    other = chatgpt_talk("Q", "A", conversation_id=None, created=STARTED + 1)
    ids = [read_one(each).transcript.external_id for each in (first, later, other)]
    assert ids[0] == ids[1] != ids[2]


def test_a_conversation_without_messages_is_an_empty_one(read_one):
    found = read_one(chatgpt(root(), current="root"))
    assert (found.turns, found.message_count) == ([], 0)


def test_a_mapping_that_is_no_tree_is_named(tmp_path):
    path = write_json(tmp_path / "c.json", [chatgpt_talk("Q"), {"id": "x", "mapping": [1]}])
    with pytest.raises(BadImport, match=r'Conversation 2 of c.json .* "mapping" is no object'):
        list(read(path, CHATGPT))


@pytest.mark.parametrize("kind", ["code", "text"])
def test_a_new_document_of_the_canvas_is_kept_as_it_is_shown(read_one, kind):
    given = {"name": "Tea", "type": "document", "content": " # Tea\r\n"}
    text = json.dumps(given)
    content = {"content_type": kind, **({"text": text} if kind == "code" else {"parts": [text]})}
    canvas = said("c", "", parent="root", role="assistant", content=content)
    canvas["message"]["recipient"] = "canmore.create_textdoc"
    (turn,) = read_one(chatgpt(root(), canvas, current="c")).turns
    assert (turn.role, turn.text) == ("assistant", " # Tea\r\n")
    assert turn.metadata == {"canvas": {"name": "Tea", "type": "document"}}


def test_a_document_of_the_canvas_that_is_cut_off_is_kept_whole(read_one):
    canvas = said("c", '{"name": "Te', parent="root", role="assistant")
    canvas["message"]["recipient"] = "canmore.create_textdoc"
    (turn,) = read_one(chatgpt(root(), canvas, current="c")).turns
    assert (turn.role, turn.text) == ("tool", '{"name": "Te')


def remembering(text, **more):
    """A conversation that ChatGPT begins with what it remembers."""
    content = {"content_type": "model_editable_context", "model_set_context": text}
    memories = said("memories", "", parent="root", role="assistant", at=None, content=content)
    return chatgpt(root(), memories, said("q", "Q", parent="memories"), current="q", **more)


def test_what_chatgpt_remembers_is_a_conversation_of_its_own(tmp_path):
    listed = "1. [2024-03-01]. User bakes.\n2. [2024-06-01]. User has a cat. "
    exported = [
        remembering(listed, conversation_id="new", created=STARTED + 60),
        remembering("1. [2024-03-01]. User bakes.", conversation_id="old"),
        remembering("", conversation_id="none", created=STARTED + 90),
    ]
    path = write_json(tmp_path / "conversations.json", exported)
    *_, last = found = list(read(path, CHATGPT))
    assert [each.transcript.external_id for each in found] == ["new", "old", "none", "memories"]
    assert all(dict(each.skipped) == {INSTRUCTIONS: 1} for each in found[:3])
    (turn,) = last.turns
    assert (turn.role, turn.text) == ("assistant", listed)
    assert turn.said_at == START + timedelta(seconds=60)


def test_a_memory_that_chatgpt_saves_stands_in_its_conversation(read_one):
    saved = said("s", "User has a cat.", parent="root", role="assistant", recipient="bio")
    (turn,) = read_one(chatgpt(root(), saved, current="s")).turns
    assert (turn.role, turn.text) == ("tool", "User has a cat.")

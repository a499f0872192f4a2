"""Whatever is in a file, reading it ends in conversations or in a sentence."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from language.errors import BadImport
from language.storable import ID_LENGTH, is_storable
from language.transcripts import ROLES
from palace.transfer.importers import FORMATS, detect, read
from palace.transfer.importers.conversation import conversation_from_line, conversation_to_line
from tests.hypothesis_profiles import examples
from tests.transfer.importers.exports import (
    chatgpt_talk,
    claude,
    claude_message,
    gemini,
    plain,
    slack,
    slack_message,
    write_zip,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=12)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
SOUND = {
    "chatgpt": chatgpt_talk("Q", "A"),
    "claude": claude(claude_message("1", "Q"), claude_message("2", "A", sender="assistant")),
    "gemini": gemini("Prompted Q", "<p>A</p>"),
    "plain": plain("Q", "A"),
}
SLACK = slack(
    {"general/2024-06-01": [slack_message("Q", thread_ts="1717236000.000100"), slack_message("A")]},
    **{"dms.json": [{"id": "D1", "members": ["U1", "U2"]}]},
)


def check(path):
    """Read the file; every conversation it gives must be sound in itself."""
    with contextlib.suppress(BadImport):
        format_ = detect(path)
        for conversation in read(path, format_):
            check_conversation(conversation, format_)


def check_conversation(conversation, format_):
    for transcript in conversation.transcripts:
        assert transcript.source == format_.source
        assert 0 < len(transcript.external_id) <= ID_LENGTH
        assert all(map(is_storable, (transcript.external_id, transcript.title, transcript.agent)))
    ids = [turn.external_id for turn in conversation.turns]
    assert len(set(ids)) == len(ids)
    for turn in conversation.turns:
        assert 0 < len(turn.external_id) <= ID_LENGTH
        assert turn.role in ROLES
        assert turn.text.strip()
        assert all(map(is_storable, (turn.external_id, turn.text, turn.speaker)))
        assert turn.said_at.tzinfo is UTC
    assert conversation_from_line(conversation_to_line(conversation)) == conversation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("anything")


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=300))
@example(b"[")
@example(b'{"id":')
def test_any_bytes(folder, content):
    path = folder / "bytes"
    path.write_bytes(content)
    check(path)


@settings(max_examples=examples(150), deadline=None)
@given(ANY_JSON, st.booleans())
def test_any_json(folder, value, is_listed):
    path = folder / "json"
    path.write_text(json.dumps([value] if is_listed else value))
    check(path)


def replaced(value, path, new):
    """A copy of the JSON value with what is at `path` (keys and indices) replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def places(value, path=()):
    """The path of every value inside the JSON value, itself included."""
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            yield from places(each, (*path, key))


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_sound_conversation_with_anything_put_anywhere(folder, data):
    source = data.draw(st.sampled_from(sorted(SOUND)))
    place = data.draw(st.sampled_from(list(places(SOUND[source]))))
    odd = replaced(SOUND[source], place, data.draw(ANY_JSON))
    path = folder / "odd"
    sound = json.dumps(SOUND[source])
    if FORMATS[source].name == "plain JSON Lines":
        path.write_text(f"{sound}\n{json.dumps(odd)}\n")
    else:
        path.write_text(f"[{sound}, {json.dumps(odd)}]")
    check(path)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_slacks_export_with_anything_put_anywhere(folder, data):
    place = data.draw(st.sampled_from(list(places(SLACK))))
    if place:
        odd = replaced(SLACK, place, data.draw(ANY_JSON))
        check(write_zip(folder / "slack.zip", {k: json.dumps(v) for k, v in odd.items()}))


@settings(max_examples=examples(60), deadline=None)
@given(st.text(st.sampled_from("#*`~-: \r\n\u2028YouAssistant") | st.characters(), max_size=80))
@example("---\ndate: 0001-01-01T00:00+14:00\n---\n**You:**\n**AI:** a")
def test_any_markdown(folder, text):
    path = folder / "any.md"
    path.write_bytes(text.encode(errors="surrogatepass"))
    check(path)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_zip_with_any_byte_changed(folder, data):
    path = write_zip(folder / "a.zip", {"conversations.json": [SOUND["chatgpt"]]})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(4, len(content)))])
    check(path)

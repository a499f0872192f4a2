from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from palace.transfer.importers import chat_sites, detect, read
from palace.transfer.importers.conversation import UNKNOWN_FORM
from tests.transfer.importers.chat_exports import perplexity as thread
from tests.transfer.importers.chat_exports import perplexity_entry, perplexity_loaded
from tests.transfer.importers.exports import write_json, write_zip


def told(found):
    return [(turn.role, turn.text) for turn in found.turns]


def all_of(path):
    assert detect(path) is chat_sites.PERPLEXITY_FORMAT
    return list(read(path, chat_sites.PERPLEXITY_FORMAT))


def test_an_account_has_a_conversation_a_thread(tmp_path):
    later = "2024-06-02T08:00:00.000000Z"
    first = thread(
        perplexity_entry("Which pier?\n\nOf Split.", "# Pier 3 [1]\n"),
        perplexity_entry("And when?", None, at=later, query_status="FAILED"),
    )
    data = {"conversations": [first, thread(title="Empty")], "account": {"email": "a@example.org"}}
    found, empty = all_of(write_json(tmp_path / "data.json", data))
    assert told(found) == [
        ("user", "Which pier?\n\nOf Split."),
        ("assistant", "# Pier 3 [1]\n"),
        ("user", "And when?"),
    ]
    assert dict(found.skipped) == {UNKNOWN_FORM: 1}
    assert found.turns[-1].said_at == datetime(2024, 6, 2, 8, tzinfo=UTC)
    assert (found.transcript.title, found.transcript.agent) == ("The pier", "Perplexity")
    assert not empty.turns


def test_a_thread_that_has_grown_keeps_its_id(tmp_path):
    entries = [perplexity_entry("Q", "A"), perplexity_entry("Q2", "A2")]
    ids = []
    for some in (entries[:1], entries):
        data = {"conversations": [thread(*some)]}
        (found,) = all_of(write_json(tmp_path / "data.json", data))
        ids.append((found.transcript.external_id, found.turns[0].external_id))
    assert ids[0] == ids[1]


def test_what_the_site_loads_is_read_from_a_zip_of_threads(tmp_path):
    loaded = perplexity_loaded(("e-1", "Which pier?", "Pier 3. "), ("e-2", "When?", "At 21:15."))
    (found,) = all_of(write_zip(tmp_path / "json.zip", {"json/the pier.json": loaded}))
    assert [text for _, text in told(found)] == ["Which pier?", "Pier 3. ", "When?", "At 21:15."]
    assert [turn.external_id for turn in found.turns[:2]] == ["e-1/user", "e-1/assistant"]
    assert dict(found.left_out) == {"search": 2, "thinking": 2}
    assert found.transcript.external_id == "p-1"


def test_a_thread_of_many_lines_is_recognised_by_the_beginning_of_its_first_entry(tmp_path):
    path = tmp_path / "thread.json"
    path.write_text(json.dumps(perplexity_loaded(("e-1", "Q", "A")), indent=2))
    (found,) = all_of(path)
    assert told(found) == [("user", "Q"), ("assistant", "A")]


def test_entries_that_are_no_list_are_refused(tmp_path):
    data = {"conversations": [thread(perplexity_entry("Q", "A")), thread(entries="?")]}
    path = write_json(tmp_path / "data.json", data)
    with pytest.raises(BadImport, match="Conversation 2 of data"):
        list(read(path, detect(path)))

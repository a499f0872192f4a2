"""What is in an export: everything, to the byte, and nothing of anybody else."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Fact, Palace
from palace.storage.transcript_filing import file_transcripts
from palace.transfer.export import READERS, stream
from palace.transfer.importers.loci import FILES
from settings_app.models import MemorySettings
from tests.transfer.palaces import SPOKEN, TEXTS, furnished, lines_of


def test_every_message_is_there_to_the_byte(full, exported):
    said = lines_of(exported(full), "drawers")
    assert [each["text"] for each in said[: len(TEXTS)]] == list(TEXTS)
    first = said[0]
    drawer = Drawer.objects.get(palace=full, uuid=first["id"])
    assert first["pointer"] == str(drawer.pointer)
    assert first["metadata"] == {"client": {"n": 0, "é": [1.5, None]}}
    assert datetime.fromisoformat(first["said_at"]) == drawer.said_at
    assert {"entity": {"kind": "place", "slug": "lisbon"}, "start": 11, "end": 17} in first[
        "mentions"
    ]
    assert [bool(each["trashed_at"]) for each in said[: len(TEXTS)]] == [False, False, False, True]


def test_the_manifest_counts_and_vouches_for_every_file(full, exported):
    with zipfile.ZipFile(exported(full)) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        assert (manifest["format"], manifest["version"]) == ("loci-palace", 1)
        assert set(manifest["files"]) == set(archive.namelist()) - {"manifest.json"}
        for name, entry in manifest["files"].items():
            content = archive.read(name)
            assert entry["bytes"] == len(content)
            assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert set(manifest["counts"]) == set(FILES)
    assert manifest["counts"]["drawers"] == Drawer.objects.filter(palace=full).count()
    assert manifest["counts"]["facts"] == Fact.objects.filter(palace=full).count()


def test_a_person_can_read_it_too(full, exported):
    with zipfile.ZipFile(exported(full)) as archive:
        pages = [name for name in archive.namelist() if name.startswith("rooms/")]
        assert all(".." not in name and name.count("/") == 1 for name in pages)
        assert len(pages) == 2
        page = archive.read(pages[0]).decode()
    assert all(text in page for text in TEXTS[:3])
    assert TEXTS[3] not in page
    assert "§ W-" in page


def test_facts_keep_both_clocks_their_words_and_their_history(full, exported):
    path = exported(full)
    old, new = (each for each in lines_of(path, "facts") if each["predicate"] == "lives_in_test")
    assert (old["fate"], old["retired_at"]) == ("superseded", "2024-04-18T18:30:00+00:00")
    assert new["supersedes"] == old["id"]
    assert new["evidence"] == [
        {"source": "plain", "conversation": "talk-0", "message": "m0", "start": 1, "end": 17}
    ]
    events = [each for each in lines_of(path, "fact_events") if each["memory"] == new["memory"]]
    assert [each["event"] for each in events] == ["ADD", "UPDATE"]


def test_what_a_fact_supersedes_comes_before_it(palace, exported):
    """Also where what was so before was learnt after it."""
    for day in (9, 1, 5):
        remember(palace, f"I live in Town{'abcdefghij'[day]}.", now=SPOKEN + timedelta(days=day))
    seen = set()
    for each in lines_of(exported(palace), "facts"):
        assert each["supersedes"] is None or each["supersedes"] in seen
        seen.add(each["id"])
    assert len(seen) >= 3


def test_no_key_is_in_it_and_nobody_elses_words(full, exported, bob):
    MemorySettings.objects.create(owner=full.owner, provider="openai").set_key("sk-very-secret")
    kept = MemorySettings.objects.get(owner=full.owner)
    kept.set_key("sk-very-secret")
    kept.save()
    strangers = Palace.objects.own(bob)
    file_transcripts(
        strangers,
        [Transcript("plain", "x", "", (Turn("1", "user", "Bob's Goffriller", datetime.now(UTC)),))],
    )
    with zipfile.ZipFile(exported(full)) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
        settings = json.loads(archive.read("data/settings.json"))
    assert settings["provider"] == "openai"
    for secret in ("sk-very-secret", kept.sealed_key, "Goffriller", "alice@example.org"):
        assert secret.encode() not in everything


def test_every_file_that_is_read_back_is_written(palace):
    assert list(READERS) == list(FILES)


def test_an_empty_palace_is_an_export_too(palace, exported):
    path = exported(palace)
    assert all(lines_of(path, name) == [] for name in FILES)


@pytest.mark.django_db(transaction=True)
def test_it_is_the_palace_as_it_was_at_one_moment(django_user_model):
    """What is written while it is sent is not in it, not even in part."""
    palace = Palace.objects.own(django_user_model.objects.create_user("alice"))
    furnished(palace)
    made = stream(palace)
    pieces = [next(made)]
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("UPDATE palace_drawer SET trashed_at = now()")
    finally:
        other.close()
    pieces += made
    assert not connection.in_atomic_block
    assert b"".join(pieces)[:2] == b"PK"


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_palace(palace):
    said = [f"{number} " + "word " * 20_000 for number in range(400)]
    turns = tuple(Turn(text[:5], "user", text, datetime.now(UTC)) for text in said)
    file_transcripts(palace, [Transcript("plain", "long", "", turns)])
    size = sum(map(len, said))
    tracemalloc.start()
    try:
        assert sum(map(len, stream(palace))) > 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 2

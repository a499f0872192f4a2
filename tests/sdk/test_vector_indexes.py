"""Facts' vectors of a program of its own: in Qdrant, which no worker writes to."""

from __future__ import annotations

import pytest
from django.utils import timezone

from palace.curation.purge import Purge
from palace.knowledge.facts.fact_edits import forget
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, FactVector
from palace.sdk import BadInput, Memory, VectorStoreError, open_vector_store
from palace.storage.indexing.fact_vectors import PgVectorIndex, using
from palace.storage.indexing.spaces import active_space
from tests.conversations import transcript
from tests.sdk.contract_calls import add_one, texts


def test_with_qdrant_nothing_is_written_to_postgres(alice, qdrant):
    memory = Memory(alice, vector_index=qdrant)
    key = add_one(memory, "User likes Python")
    memory.update(key, "User likes Rust")
    assert memory.search("Rust", user_id="alice")["results"]
    assert not FactVector.objects.exists()


def test_what_others_made_of_messages_is_found_in_qdrant_too(alice, palace, qdrant):
    mine(palace, transcript("I live in Porto.", "How nice."))
    learn_unread(palace)
    Fact.objects.update(agent="helper")
    found = Memory(alice, vector_index=qdrant).search("home", agent_id="helper")
    assert texts(found) == ["User lives in Porto"]


def test_reset_leaves_nothing_in_qdrant(alice, qdrant):
    memory = Memory(alice, vector_index=qdrant)
    add_one(memory, "User likes Python")
    fact = Fact.objects.get()
    assert qdrant.filter(fact.palace, active_space(), [fact.pk])
    memory.reset()
    assert not qdrant.filter(fact.palace, active_space(), [fact.pk])


@pytest.mark.parametrize("call", ["add", "search", "reset"])
def test_what_was_purged_elsewhere_leaves_qdrant_at_the_next_call(alice, qdrant, call):
    memory = Memory(alice, vector_index=qdrant)
    add_one(memory, "User likes Python")
    add_one(memory, "User lives in NYC")
    gone, kept = Fact.objects.order_by("pk")
    Drawer.objects.filter(text__contains="Python").update(trashed_at=timezone.now())
    Purge(gone.palace).run(Drawer.objects.all())
    assert qdrant.filter(gone.palace, active_space(), [gone.pk])
    if call == "reset":
        memory.reset()
    else:
        getattr(memory, call)("Where?", user_id="alice")
    held = qdrant.filter(gone.palace, active_space(), [gone.pk, kept.pk])
    assert held == (set() if call == "reset" else {kept.pk})


def test_what_is_purged_in_the_program_itself_leaves_qdrant_at_once(alice, qdrant):
    add_one(Memory(alice, vector_index=qdrant), "User likes Python")
    fact = Fact.objects.get()
    with using(qdrant):
        forget(fact.palace, Fact.objects.all())
    assert not qdrant.filter(fact.palace, active_space(), [fact.pk])


def test_a_folder_that_cannot_be_used_is_an_error_of_the_sdk(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(VectorStoreError, match=r"only one process .*/taken"):
        open_vector_store("qdrant", folder=tmp_path / "taken")


@pytest.mark.parametrize("given", [5, "qdrant", {}, PgVectorIndex])
def test_what_is_no_vector_index_is_refused(alice, given):
    with pytest.raises(BadInput, match=r"vector_index is what open_vector_store.* returns"):
        Memory(alice, vector_index=given)


def test_a_server_of_qdrant_that_is_away_is_named_by_search_and_loses_nothing(alice):
    config = {"vector_store": {"provider": "qdrant", "config": {"url": "http://127.0.0.1:1"}}}
    memory = Memory.from_config(config, owner=alice)
    add_one(memory, "User likes Python")
    assert texts(memory.get_all(user_id="alice")) == ["User likes Python"]
    with pytest.raises(VectorStoreError, match=r"Qdrant.* does not answer"):
        memory.search("programming", user_id="alice")

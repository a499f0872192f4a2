"""Facts' vectors behind the seam: the same of Postgres and of Qdrant."""

from __future__ import annotations

import numpy as np
import pytest
from django.utils import timezone

from palace.curation.purge import Purge
from palace.knowledge.facts.fact_edits import forget
from palace.knowledge.facts.fact_learning import learn_unread
from palace.models import Drawer, Fact, FactVector
from palace.pipeline import mine
from palace.sdk import Memory
from palace.storage.indexing.fact_vectors import PgVectorIndex, index_in_use, using
from palace.storage.indexing.spaces import active_space
from tests.conversations import transcript
from tests.factories import EntityFactory, FactFactory, PalaceFactory
from tests.sdk.contract_calls import add_one, texts


@pytest.fixture(params=["Postgres", "Qdrant"])
def index(request):
    return request.getfixturevalue("qdrant") if request.param == "Qdrant" else PgVectorIndex()


@pytest.fixture
def space(db):
    return active_space()


@pytest.fixture
def facts(palace):
    about = EntityFactory(palace=palace)
    return [FactFactory(subject=about) for _ in range(3)]


def towards(*weights):
    """A vector of length 1 with these first numbers."""
    vector = np.zeros(384, dtype=np.float32)
    vector[: len(weights)] = weights
    return vector / np.linalg.norm(vector)


def keys(found):
    return [key for key, _ in found]


def everything(palace):
    return Fact.objects.within(palace)


@pytest.fixture
def stored(index, palace, space, facts):
    """Three facts: at 0°, 45° and 90° of the first direction."""
    one, two, three = facts
    vectors = {one.pk: towards(1), two.pk: towards(1, 1), three.pk: towards(0, 1)}
    index.upsert(palace, space, vectors)
    return index


def test_the_closest_come_first_each_with_its_cosine(stored, palace, space, facts):
    found = stored.search(palace, space, towards(1), everything(palace), limit=9)
    assert keys(found) == [fact.pk for fact in facts]
    assert [cosine for _, cosine in found] == pytest.approx([1, 0.7071, 0], abs=1e-3)
    assert len(stored.search(palace, space, towards(1), everything(palace), limit=2)) == 2


def test_only_those_that_are_asked_for_are_found(stored, palace, space, facts):
    some = everything(palace).filter(pk__in=[facts[1].pk, facts[2].pk]).order_by("-recorded_at")
    assert keys(stored.search(palace, space, towards(1), some, limit=9)) == [
        facts[1].pk,
        facts[2].pk,
    ]
    assert stored.search(palace, space, towards(1), Fact.objects.none(), limit=9) == []


def test_a_palace_sees_nothing_of_another(stored, space):
    other = PalaceFactory()
    assert stored.search(other, space, towards(1), Fact.objects.all(), limit=9) == []


def test_a_new_vector_takes_the_place_of_the_old(stored, palace, space, facts):
    stored.upsert(palace, space, {facts[2].pk: towards(1)})
    found = dict(stored.search(palace, space, towards(1), everything(palace), limit=9))
    assert found[facts[2].pk] == pytest.approx(1, abs=1e-3)
    assert len(found) == 3


def test_it_tells_which_it_has_and_forgets_what_is_deleted(stored, palace, space, facts):
    every = [fact.pk for fact in facts]
    assert stored.filter(palace, space, [*every, -1]) == set(every)
    assert stored.filter(palace, space, []) == set()
    stored.delete(PalaceFactory(), every)
    assert stored.filter(palace, space, every) == set(every)
    stored.delete(palace, every[:2])
    assert stored.filter(palace, space, every) == {every[2]}
    assert keys(stored.search(palace, space, towards(1), everything(palace), limit=9)) == every[2:]


def test_it_keeps_what_it_is_told_to_of_one_palace(stored, palace, space, facts):
    every = [fact.pk for fact in facts]
    stored.retain(PalaceFactory(), [])
    assert stored.filter(palace, space, every) == set(every)
    stored.retain(palace, [every[0], -1])
    assert stored.filter(palace, space, every) == {every[0]}
    stored.retain(palace, [])
    assert stored.filter(palace, space, every) == set()


def test_an_index_is_in_use_inside_its_block_only(qdrant):
    with using(qdrant):
        assert index_in_use() is qdrant
    assert isinstance(index_in_use(), PgVectorIndex)


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


def test_a_folder_keeps_vectors_for_the_next_time(tmp_path, palace, space, facts, qdrant):
    kind = type(qdrant)
    with kind(tmp_path / "vectors") as index:
        index.upsert(palace, space, {facts[0].pk: towards(1)})
    with kind(tmp_path / "vectors") as index:
        assert index.filter(palace, space, [facts[0].pk]) == {facts[0].pk}

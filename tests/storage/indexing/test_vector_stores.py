"""The contract of a store of facts' vectors, on the real engine of each, in this process."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from language.errors import BadInput, VectorStoreAway
from palace.models import EmbeddingSpace, Fact
from palace.storage import indexing
from palace.storage.indexing import CLIENTS, STORES
from palace.storage.indexing.fact_vectors import (
    PgVectorIndex,
    index_in_use,
    nearest,
    open_store,
    using,
)
from palace.storage.indexing.spaces import active_space
from tests.factories import EntityFactory, FactFactory, PalaceFactory

OUTSIDE = tuple(CLIENTS)


def opened(kind, folder, **more):
    if kind in CLIENTS:
        pytest.importorskip(CLIENTS[kind], reason=f"{kind} comes with the extra `{kind}`.")
    return open_store(kind, folder=None if kind == "postgres" else folder, **more)


@pytest.fixture(params=STORES)
def index(request, tmp_path):
    index = opened(request.param, tmp_path / "vectors")
    yield index
    if request.param != "postgres":
        index.close()


@pytest.fixture
def closed_port():
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def space(db):
    return active_space()


@pytest.fixture
def other_space(db):
    return EmbeddingSpace.objects.create(provider="local", model="another", dimensions=384)


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


def test_a_palace_reads_nothing_of_another(stored, space, facts):
    other, every = PalaceFactory(), [fact.pk for fact in facts]
    assert stored.search(other, space, towards(1), Fact.objects.all(), limit=9) == []
    assert stored.filter(other, space, every) == set()
    assert stored.fetch(other, space, every) == {}


def test_a_palace_deletes_nothing_of_another(stored, palace, space, facts):
    other, every = PalaceFactory(), [fact.pk for fact in facts]
    stored.delete(other, every)
    stored.retain(other, [])
    assert stored.filter(palace, space, every) == set(every)


def test_spaces_are_apart(stored, palace, space, other_space, facts):
    every = [fact.pk for fact in facts]
    assert stored.search(palace, other_space, towards(1), everything(palace), limit=9) == []
    stored.upsert(palace, other_space, {facts[0].pk: towards(0, 0, 1)})
    assert stored.filter(palace, other_space, every) == {facts[0].pk}
    assert stored.fetch(palace, space, every[:1])[facts[0].pk] == pytest.approx(towards(1))
    stored.delete(palace, every[:1])
    assert stored.filter(palace, other_space, every) == set()
    assert stored.filter(palace, space, every) == set(every[1:])


def test_a_new_vector_takes_the_place_of_the_old(stored, palace, space, facts):
    stored.upsert(palace, space, {facts[2].pk: towards(1)})
    found = dict(stored.search(palace, space, towards(1), everything(palace), limit=9))
    assert found[facts[2].pk] == pytest.approx(1, abs=1e-3)
    assert len(found) == 3


def test_vectors_come_back_as_they_were_written(stored, palace, space, facts):
    fetched = stored.fetch(palace, space, [facts[1].pk, facts[2].pk, -1])
    assert set(fetched) == {facts[1].pk, facts[2].pk}
    assert fetched[facts[1].pk] == pytest.approx(towards(1, 1), abs=1e-3)


def test_what_is_deleted_is_gone(stored, palace, space, facts):
    every = [fact.pk for fact in facts]
    assert stored.filter(palace, space, [*every, -1]) == set(every)
    assert stored.filter(palace, space, []) == set()
    stored.delete(palace, [*every[:2], -1])
    assert stored.filter(palace, space, every) == {every[2]}
    assert keys(stored.search(palace, space, towards(1), everything(palace), limit=9)) == every[2:]
    stored.delete(palace, every)
    assert stored.filter(palace, space, every) == set()
    assert stored.search(palace, space, towards(1), everything(palace), limit=9) == []


def test_what_is_not_retained_is_gone(stored, palace, space, facts):
    every = [fact.pk for fact in facts]
    stored.retain(palace, [every[0], -1])
    assert stored.filter(palace, space, every) == {every[0]}
    stored.retain(palace, [])
    assert stored.filter(palace, space, every) == set()


def test_pruning_leaves_only_these_spaces_and_palaces(stored, palace, space, other_space, facts):
    stranger = FactFactory(subject=EntityFactory())
    stored.upsert(stranger.palace, space, {stranger.pk: towards(1)})
    stored.upsert(palace, other_space, {facts[0].pk: towards(1)})
    stored.prune([space], [palace.pk])
    every = [fact.pk for fact in facts]
    assert stored.filter(stranger.palace, space, [stranger.pk]) == set()
    assert stored.filter(palace, other_space, every) == set()
    assert stored.filter(palace, space, every) == set(every)
    stored.prune([space])
    assert stored.filter(palace, space, every) == set(every)
    stored.prune([space], [])
    assert stored.filter(palace, space, every) == set()


@pytest.mark.exhaustive
def test_of_many_the_closest_are_found(index, palace, space):
    """More than one batch, and more than an approximate index looks at by itself."""
    about = EntityFactory(palace=palace)
    first = FactFactory(subject=about)
    Fact.objects.bulk_create(
        Fact(
            palace=palace,
            type=first.type,
            subject=about,
            predicate="likes",
            text=f"fact {at}",
            confidence=1,
            single=False,
            recorded_at=first.recorded_at,
        )
        for at in range(2500)
    )
    every = list(everything(palace).order_by("pk").values_list("pk", flat=True))
    random = np.random.default_rng(7).normal(size=(len(every), 384)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    index.upsert(palace, space, dict(zip(every, random, strict=True)))
    assert len(index.filter(palace, space, every)) == len(every)
    cosines = random @ towards(1)
    some = every[1000:2200]
    best = sorted(some, key=lambda key: -cosines[every.index(key)])[:20]
    found = index.search(
        palace, space, towards(1), everything(palace).filter(pk__in=some), limit=20
    )
    assert len(found) == 20
    assert len(set(best) & set(keys(found))) >= 19
    all_of_them = index.search(palace, space, towards(1), everything(palace), limit=10_000)
    assert len(all_of_them) >= 0.99 * len(every)


@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_folder_keeps_vectors_for_the_next_time(kind, tmp_path, palace, space, facts):
    with opened(kind, tmp_path / "vectors") as index:
        index.upsert(palace, space, {facts[0].pk: towards(1)})
    with opened(kind, tmp_path / "vectors") as index:
        assert index.filter(palace, space, [facts[0].pk]) == {facts[0].pk}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_collections_of_others_are_left_alone(kind, tmp_path, palace, space, facts):
    folder = tmp_path / "vectors"
    with opened(kind, folder, collection="facts_of_another") as index:
        index.upsert(palace, space, {facts[0].pk: towards(1)})
    with opened(kind, folder) as index:
        assert index.filter(palace, space, [facts[0].pk]) == set()
        index.retain(palace, [])
        index.prune([], [])
    with opened(kind, folder, collection="facts_of_another") as index:
        assert index.filter(palace, space, [facts[0].pk]) == {facts[0].pk}


def test_files_of_faiss_are_shared(tmp_path, palace, space, facts):
    """As by processes: each object has a cache of its own."""
    with opened("faiss", tmp_path) as one, opened("faiss", tmp_path) as other:
        one.upsert(palace, space, {facts[0].pk: towards(1)})
        assert other.filter(palace, space, [facts[0].pk]) == {facts[0].pk}
        other.upsert(palace, space, {facts[1].pk: towards(1)})
        assert keys(one.search(palace, space, towards(1), everything(palace), limit=9)) == [
            facts[0].pk,
            facts[1].pk,
        ]
        one.retain(palace, [])
        assert other.filter(palace, space, [fact.pk for fact in facts]) == set()
        assert list(tmp_path.rglob("*.faiss")) == []


@pytest.mark.parametrize("kind", ["qdrant", "chroma", "milvus"])
def test_a_server_that_is_away_is_said_to_be_without_its_key(kind, palace, space, closed_port):
    url = f"https://127.0.0.1:{closed_port}"
    with pytest.raises(VectorStoreAway, match=rf"(?i)\({kind}\) does not answer") as raised:
        opened(kind, None, url=url, api_key="a-secret").filter(palace, space, [1])
    assert raised.value.where == url
    assert "a-secret" not in str(raised.value)


@pytest.mark.parametrize("kind", ["qdrant", "faiss"])
def test_an_index_shows_where_it_is(kind, tmp_path):
    with opened(kind, tmp_path) as index:
        assert str(tmp_path) in repr(index)


def test_the_key_of_a_server_is_not_in_its_repr():
    index = opened("qdrant", None, url="https://user:pass@127.0.0.1:1/q", api_key="a-secret")
    assert repr(index) == "QdrantIndex('https://127.0.0.1:1/q', collection='facts')"
    index.close()


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("pinecone", {}, "postgres, qdrant, chroma, faiss, milvus"),
        ("postgres", {"url": "http://localhost"}, "DATABASE_URL"),
        ("faiss", {"url": "http://localhost"}, "name a folder"),
        ("qdrant", {"url": "http://localhost", "folder": "here"}, "not both"),
        *(
            ("qdrant", {"url": url}, "one with https://, or a host")
            for url in ("tcp://localhost", "unix:/run/q", ":memory:", "http://[::1", "localhost:x")
        ),
        *(
            ("chroma", {"url": url}, "http://localhost:8000, or")
            for url in ("localhost:8000", "tcp://localhost:8000", "http:/localhost")
        ),
        *(
            ("milvus", {"url": url}, "tcp:// or unix:")
            for url in ("localhost:19530", "grpc://localhost", "file:///a.db", "tcp://", "unix:")
        ),
    ],
)
def test_what_a_store_cannot_be_is_refused(kind, more, said):
    with pytest.raises(BadInput, match=said):
        open_store(kind, **more)


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("qdrant", "localhost:6333"),
        ("qdrant", "qdrant"),
        ("qdrant", "https://cloud.example.org:6333"),
        ("chroma", "http://localhost:8000"),
        ("milvus", "http://localhost:19530"),
        ("milvus", "tcp://localhost:19530"),
        ("milvus", "unix:/run/milvus.sock"),
        ("milvus", "vectors.db"),
        ("milvus", "/var/lib/vectors.db"),
    ],
)
def test_an_address_that_its_client_takes_is_taken(kind, url, monkeypatch):
    monkeypatch.setattr(indexing, "find_spec", lambda name: name)
    indexing._check(kind, None, url, "")


@pytest.mark.parametrize("url", ["https://user:pass@127.0.0.1:1", "http://127.0.0.1:1?key=pass"])
def test_a_password_in_an_address_is_never_shown(url):
    index = opened("qdrant", None, url=url)
    assert "127.0.0.1:1" in repr(index)
    with pytest.raises(VectorStoreAway) as error:
        index.prune([])
    assert "pass" not in f"{index!r}{error.value}"
    index.close()


def test_an_index_is_in_use_inside_its_block_only(tmp_path, palace, space, facts):
    with opened("faiss", tmp_path) as index:
        index.upsert(palace, space, {facts[0].pk: towards(1)})
        with using(index):
            assert index_in_use() is index
            [(fact, cosine)] = nearest(palace, space, towards(1), everything(palace), limit=9)
            assert (fact, cosine) == (facts[0], pytest.approx(1))
        assert isinstance(index_in_use(), PgVectorIndex)

"""A server that keeps facts' vectors outside of Postgres: in FAISS, or in a Qdrant that is away."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from language.transcripts import Turn
from llm.embedding import deployment_model, embed
from palace.curation.deletion import delete_palace
from palace.knowledge.facts import Scope, fact_edits
from palace.knowledge.facts.direct_writes import by_person
from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact, FactVector, Palace
from palace.recall import RecallRequest, recall
from palace.recall.facts import known_facts
from palace.storage import fill_missing_vectors, tidy_fact_vectors
from palace.storage.indexing import fact_vectors, rebuild
from palace.storage.indexing.fact_vectors import index_in_use, nearest, tidy_vectors
from palace.storage.indexing.spaces import active_space, space_for

OWN = Scope("sdk")
SAID_AT = datetime(2025, 1, 1, tzinfo=UTC)


def use(settings, store, where=""):
    settings.VECTOR_STORE, settings.VECTOR_STORE_URL = store, where


@pytest.fixture
def outside(settings, tmp_path):
    """FAISS, which Loci asks as it asks a server."""
    pytest.importorskip("faiss", reason="FAISS comes with the extra `faiss`.")
    use(settings, "faiss", str(tmp_path / "vectors"))


@pytest.fixture
def away(settings):
    """Make the store one that nobody runs; called again, it is back."""
    before = settings.VECTOR_STORE, settings.VECTOR_STORE_URL
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = "qdrant", f"http://127.0.0.1:{taken.getsockname()[1]}"

        def away(*, is_away=True):
            use(settings, *(nowhere if is_away else before))

        yield away


def say(palace, *texts):
    turns = [Turn(f"talk/{at}", "user", text, SAID_AT) for at, text in enumerate(texts)]
    return remember(palace, turns, conversation="talk", source="sdk")


def stored(palace):
    keys = list(Fact.objects.within(palace).values_list("pk", flat=True))
    return index_in_use().filter(palace, active_space(), keys)


def known(palace, question):
    found = recall(palace, RecallRequest(question, store_trace=False, with_facts=True))
    return [one.text for one in found.facts], found.notes


def test_vectors_are_there_and_not_in_postgres(palace, outside):
    say(palace, "I live in Porto.", "I like climbing.")
    assert stored(palace) == set(Fact.objects.values_list("pk", flat=True))
    assert len(stored(palace)) == 2
    assert not FactVector.objects.exists()


def test_recall_ranks_known_facts_as_with_postgres(palace, outside, settings):
    say(palace, "I live in Porto.", "I like climbing.", "I have a cat called Miso.")
    [question] = embed(["Which sport do I do?"], deployment_model(), is_question=True)
    there = known_facts(palace, active_space(), question, {}, now=timezone.now())
    use(settings, "postgres")
    call_command("reindex", user="alice", only_facts=True)
    here = known_facts(palace, active_space(), question, {}, now=timezone.now())
    assert [(one.text, pytest.approx(one.score, abs=1e-3)) for one in there] == [
        (one.text, one.score) for one in here
    ]
    assert len(there) == 3
    assert there[0].text == "User likes climbing"


def test_a_deleted_fact_leaves_the_store(palace, outside):
    say(palace, "I live in Porto.", "I like climbing.")
    gone, kept = Fact.objects.order_by("pk")
    fact_edits.forget(palace, Fact.objects.filter(pk=gone.pk))
    assert index_in_use().filter(palace, active_space(), [gone.pk, kept.pk]) == {kept.pk}


def test_a_deleted_palace_leaves_the_store(palace, outside):
    say(palace, "I live in Porto.")
    keys = stored(palace)
    delete_palace(Palace.objects.get(pk=palace.pk))
    assert index_in_use().filter(palace, active_space(), keys) == set()


def test_an_edited_and_restored_fact_has_its_vector(palace, outside):
    say(palace, "I live in Porto.")
    [fact] = Fact.objects.all()
    fact_edits.rewrite(palace, fact.memory, "User lives in Lisbon", OWN)
    fact_edits.delete(palace, fact.memory, OWN)
    again = fact_edits.restore(palace, Fact.objects.order_by("-pk").first(), by_person(fact))
    assert again.pk in stored(palace)


def test_another_palace_is_not_searched(palace, outside, bob):
    others = Palace.objects.own(bob)
    say(palace, "I live in Porto.")
    say(others, "I live in Paris.")
    space = active_space()
    [question] = embed(["Where is home?"], deployment_model(), is_question=True)
    found = nearest(palace, space, question, Fact.objects.all(), limit=9)
    assert [fact.text for fact, _ in found] == ["User lives in Porto"]


def test_while_it_is_away_facts_are_stored_and_get_vectors_later(palace, outside, away):
    away()
    lines = say(palace, "I live in Porto.", "I like climbing.")
    assert [line.new_text for line in lines] == ["User lives in Porto", "User likes climbing"]
    assert any("does not answer" in note for note in lines.notes)
    assert fact_vectors.fill_batch(active_space()) == 0
    away(is_away=False)
    assert stored(palace) == set()
    fill_missing_vectors()
    assert len(stored(palace)) == 2
    assert not fact_vectors.first_lacking(active_space(), 9)


def test_while_it_is_away_recall_answers_and_says_what_is_degraded(palace, outside, away):
    say(palace, "I like climbing.", "I have a cat called Miso.")
    facts, notes = known(palace, "Do I like climbing?")
    assert (facts[0], notes) == ("User likes climbing", ())
    away()
    facts, notes = known(palace, "Do I like climbing?")
    assert "User likes climbing" in facts
    assert [note for note in notes if "Qdrant" in note and "by their words" in note]


def test_what_is_deleted_while_it_is_away_leaves_it_later(palace, outside, away, bob):
    others = Palace.objects.own(bob)
    say(palace, "I live in Porto.", "I like climbing.")
    say(others, "I live in Paris.")
    gone, kept = Fact.objects.within(palace).order_by("pk")
    of_others = stored(others)
    away()
    fact_edits.forget(palace, Fact.objects.filter(pk=gone.pk))
    delete_palace(Palace.objects.get(pk=others.pk))
    tidy_vectors()
    away(is_away=False)
    assert index_in_use().filter(others, active_space(), of_others) == of_others
    tidy_vectors()
    assert index_in_use().filter(palace, active_space(), [gone.pk, kept.pk]) == {kept.pk}
    assert index_in_use().filter(others, active_space(), of_others) == set()


def test_lost_vectors_come_back(palace, outside):
    say(palace, "I live in Porto.", "I like climbing.")
    fill_missing_vectors()
    index_in_use().retain(palace, [])
    tidy_fact_vectors()
    fill_missing_vectors()
    assert len(stored(palace)) == 2


def test_reindex_moves_vectors_between_stores(palace, outside, settings):
    folder = settings.VECTOR_STORE_URL
    use(settings, "postgres")
    say(palace, "I live in Porto.", "I like climbing.")
    assert FactVector.objects.count() == 2
    use(settings, "faiss", folder)
    call_command("reindex", user="alice", only_facts=True)
    assert len(stored(palace)) == 2
    assert not FactVector.objects.exists()
    use(settings, "postgres")
    call_command("reindex", user="alice", only_facts=True)
    assert FactVector.objects.count() == 2


def test_reindex_says_that_the_store_is_away(palace, outside, away):
    away()
    with pytest.raises(CommandError, match=r"\(Qdrant\) does not answer"):
        call_command("reindex", user="alice", only_facts=True)


def test_a_new_model_has_vectors_of_its_own(palace, outside, settings):
    say(palace, "I live in Porto.")
    former = active_space()
    settings.EMBEDDING_MODEL = "all-MiniLM-L6-v2-int8"
    space = space_for(deployment_model())
    list(rebuild.build_space(space))
    rebuild.switch_to_space(space)
    [key] = Fact.objects.values_list("pk", flat=True)
    assert index_in_use().filter(palace, space, [key]) == {key}
    assert index_in_use().filter(palace, former, [key]) == set()

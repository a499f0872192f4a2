from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.embedding import cache
from llm.models import CachedEmbedding
from palace.mining.pipeline import mine
from palace.models import Drawer, Passage
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing import rebuild
from palace.storage.indexing.passages import MAX_PASSAGES, split_text
from palace.storage.indexing.spaces import active_space, model_of
from tests.conversations import BATTERY, SOURDOUGH, transcript
from tests.model_server import EMBEDDINGS, Status


@given(st.text(), st.integers(min_value=8, max_value=60))
def test_passages_hold_every_word_once_and_in_order(text, limit):
    spans = split_text(text, limit)
    assert "".join("".join(text[a:b] for a, b in spans).split()) == "".join(text.split())
    assert all(0 < b - a <= limit for a, b in spans)
    assert [a for a, _ in spans] == sorted(a for a, _ in spans)


def test_a_monstrous_message_has_no_more_passages_than_can_be_numbered():
    assert len(split_text("word " * 400_000, 10)) == MAX_PASSAGES


def test_a_short_text_is_one_passage():
    assert split_text("A few words.", 900) == [(0, 12)]


def test_a_long_text_is_cut_where_sentences_end():
    text = "One sentence of some length is here. " * 20
    spans = split_text(text, 200)
    assert all(text[a:b].rstrip().endswith(".") for a, b in spans)


def test_unspaced_text_is_cut_shorter():
    assert max(b - a for a, b in split_text("電池の配線" * 200, 900)) <= 225


@pytest.mark.parametrize(
    "character",
    ["👩‍👩‍👧‍👦", "👍🏽", "🇹🇷", "e\u0301", "\u1112\u1161\u11ab", "हि", "நி", "❤\ufe0f", "ก็"],
)
@pytest.mark.parametrize("before", range(6))
def test_no_character_is_split(character, before):
    text = "x" * before + character * 200
    for start, _ in split_text(text, 40)[1:]:
        assert (start - before) % len(character) == 0


def test_marks_without_end_are_cut_all_the_same():
    assert max(b - a for a, b in split_text("e" + "\u0301" * 500, 40)) <= 40


def test_the_vector_of_a_message_is_stored_once(palace):
    mine(palace, BATTERY)
    assert Passage.objects.filter(palace=palace).exclude(embedding=None).count() == 4
    keys = cache.keys([turn.text for turn in BATTERY.turns], model_of(active_space()))
    assert not CachedEmbedding.objects.filter(key__in=keys).exists()


def test_only_what_sums_up_a_conversation_is_cached(palace):
    mine(palace, BATTERY)
    before = CachedEmbedding.objects.count()
    mine(palace, SOURDOUGH)
    title, episode = 1, 1
    assert CachedEmbedding.objects.count() <= before + title + episode


@pytest.fixture
def remote_embedder(settings, model_server):
    settings.EMBEDDING_PROVIDER = model_server.base_url
    settings.EMBEDDING_MODEL = "remote-model"
    settings.EMBEDDING_API_KEY = "key"
    settings.LLM_MAX_RETRIES = 0
    return model_server


def test_a_message_is_paid_for_once_however_often_it_is_embedded(palace, remote_embedder):
    mine(palace, transcript("The tram was late.", "Again?", "The tram was late."))
    for _ in rebuild.rebuild_passages(palace):
        pass
    sent = [text for request in remote_embedder.requests for text in request.body["input"]]
    assert sent.count("The tram was late.") == sent.count("Again?") == 1
    first, _, last = Passage.objects.filter(palace=palace).order_by("drawer")
    assert first.embedding == last.embedding


@pytest.fixture
def broken_embedder(remote_embedder):
    remote_embedder.script([Status(500)] * 50, path=EMBEDDINGS)
    return remote_embedder


def test_a_failed_embedding_leaves_the_drawer_and_is_made_up_for_later(palace, broken_embedder):
    mine(palace, BATTERY)
    assert Drawer.objects.within(palace).unmined().count() == 0
    assert Passage.objects.filter(palace=palace, embedding=None).count() == 4
    found = recall(palace, RecallRequest("silicone wire overheated"))
    assert found.hits[0].drawer.text == BATTERY.turns[0].text
    assert any("by words only" in note for note in found.notes)

    broken_embedder.recover(EMBEDDINGS)
    episode = 1
    assert rebuild.fill_missing_vectors() == 4 + episode
    assert not Passage.objects.filter(embedding=None).exists()
    assert "meaning" in recall(palace, RecallRequest("silicone wire overheated")).hits[0].signals

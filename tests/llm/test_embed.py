from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from llm import embedding
from llm.embedding import EmbeddingModel, cache, embed
from llm.errors import EmbedderMisconfigured
from llm.models import CachedEmbedding, Usage
from tests.cached_embeddings import not_cached

pytestmark = pytest.mark.django_db

MODEL = embedding.deployment_model()
TEXTS = ["The kettle is in the attic.", "Rosa plays the cello.", "The kettle is in the attic."]


def test_the_deployments_model_is_local_by_default():
    assert EmbeddingModel("local", "all-MiniLM-L6-v2", 384) == MODEL


def test_each_text_gets_a_unit_vector_in_order():
    vectors = embed(TEXTS, MODEL)
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert (vectors[0] == vectors[2]).all()
    assert vectors[0] @ vectors[1] < 0.5


def test_a_remembered_vector_is_the_computed_one_to_the_bit():
    computed = embed(TEXTS, MODEL)
    remembered = embed(TEXTS[::-1], MODEL)[::-1]
    uncached = embed(TEXTS, MODEL, cached=False)
    assert (computed == remembered).all()
    assert np.abs(computed - uncached).max() < 1e-3
    assert CachedEmbedding.objects.count() == 2


def test_only_what_is_new_goes_to_the_model_and_is_metered(alice):
    with not_cached():
        embed(TEXTS, MODEL, owner_id=alice.pk)
        embed([*TEXTS, "And one more."], MODEL, owner_id=alice.pk)
        embed(TEXTS, MODEL, owner_id=alice.pk)
    first, second = Usage.objects.order_by("pk")
    assert (first.tokens_in, second.tokens_in) == (9 + 9 - 2, 6)
    assert first.owner == alice
    assert (first.provider, first.model) == ("local", "all-MiniLM-L6-v2")
    assert first.purpose == Usage.Purpose.MEMORY_EMBED
    assert first.cost_usd == Decimal(0)
    assert first.outcome == "ok"
    assert first.duration_ms > 0


def test_what_is_not_to_be_cached_is_metered_but_not_kept():
    vectors = embed(["Where is the kettle?"], MODEL, is_question=True, purpose="memory_qa")
    assert vectors.shape == (1, 384)
    assert Usage.objects.get().purpose == "memory_qa"
    assert not CachedEmbedding.objects.exists()


def test_no_texts_need_no_model():
    assert embed([], MODEL).shape == (0, 384)
    assert embed([], MODEL, is_question=True).shape == (0, 384)
    assert not Usage.objects.exists()


def test_text_that_is_half_a_surrogate_pair_is_embedded_all_the_same():
    assert np.isfinite(embed(["broken \ud83d emoji", "nul \x00 byte"], MODEL)).all()


def test_lookup_and_insert_are_one_statement_each(django_assert_num_queries):
    texts = [f"Jar {number} holds buttons." for number in range(300)]
    # Look up, and meter between two savepoints; the insert is not sent by Django's own cursor.
    with django_assert_num_queries(4):
        embed(texts, MODEL)
    with django_assert_num_queries(1):
        embed(texts, MODEL)


def test_the_cache_holds_no_text_and_its_keys_need_the_secret(settings):
    embed(TEXTS, MODEL)
    kept = set(CachedEmbedding.objects.values_list("key", flat=True))
    assert set(cache.keys(TEXTS, MODEL)) == kept
    settings.SECRET_KEY = "another deployment's"
    assert kept.isdisjoint(cache.keys(TEXTS, MODEL))


def test_another_model_has_other_keys():
    others = [
        EmbeddingModel("local", "all-MiniLM-L6-v2", 256),
        EmbeddingModel("openai", "all-MiniLM-L6-v2", 384),
        EmbeddingModel("local", "another", 384),
    ]
    keys = [cache.keys(TEXTS[:1], model)[0] for model in [MODEL, *others]]
    assert len(set(keys)) == 4


def test_the_day_of_use_is_refreshed_at_most_once_a_day(django_assert_num_queries):
    embed(TEXTS, MODEL)
    CachedEmbedding.objects.update(used_on=timezone.now().date() - timedelta(days=3))
    with django_assert_num_queries(2):
        embed(TEXTS, MODEL)
    assert set(CachedEmbedding.objects.values_list("used_on", flat=True)) == {timezone.now().date()}
    with django_assert_num_queries(1):
        embed(TEXTS, MODEL)


def test_what_has_not_been_used_for_a_month_is_pruned():
    embed(TEXTS, MODEL)
    kitchen, rosa = cache.keys(TEXTS[:2], MODEL)
    today = timezone.now().date()
    CachedEmbedding.objects.filter(key=kitchen).update(used_on=today - timedelta(days=31))
    CachedEmbedding.objects.filter(key=rosa).update(used_on=today - timedelta(days=30))
    assert embedding.prune() == 1
    assert CachedEmbedding.objects.get().key == rosa


def test_purged_texts_are_forgotten():
    embed(TEXTS, MODEL)
    assert embedding.forget(TEXTS[:1], MODEL) == 1
    assert CachedEmbedding.objects.get().key == cache.keys(TEXTS[1:2], MODEL)[0]


def test_a_row_put_there_meanwhile_is_left_as_it_is():
    (key,) = cache.keys(["raced"], MODEL)
    cache.keep({key: b"first"})
    cache.keep({key: b"second"})
    assert cache.look_up([key]) == {key: b"first"}


@pytest.mark.parametrize(
    ("model", "cure"),
    [
        (EmbeddingModel("local", "all-mpnet-base-v2", 384), "LOCI_EMBEDDING_MODEL"),
        (EmbeddingModel("local", "all-MiniLM-L6-v2", 768), "LOCI_EMBEDDING_DIMENSIONS to 384"),
    ],
)
def test_a_local_model_there_is_not_is_refused_with_the_cure_and_metered(model, cure):
    with pytest.raises(EmbedderMisconfigured, match=cure):
        embed(["text"], model)
    assert Usage.objects.get().outcome == "embedder_misconfigured"


def test_the_key_is_not_shown_and_makes_no_difference_to_the_vectors():
    model = EmbeddingModel("openai", "text-embedding-3-small", 512, api_key="sk-very-secret")
    assert "sk-very-secret" not in repr(model)
    assert model == EmbeddingModel("openai", "text-embedding-3-small", 512)


def test_local_passages_fit_into_what_the_model_reads():
    assert embedding.max_passage_chars(MODEL) == 900
    assert embedding.max_passage_chars(EmbeddingModel("openai", "large", 3072)) > 900


def test_a_vector_takes_two_bytes_a_dimension():
    embed(TEXTS[:1], MODEL)
    with connection.cursor() as cursor:
        cursor.execute("SELECT octet_length(vector) FROM llm_cachedembedding")
        assert cursor.fetchone() == (768,)


@pytest.mark.django_db(transaction=True)
def test_many_may_embed_the_same_texts_at_once():
    texts = [f"Lamp {number} is lit." for number in range(60)]
    orders = [texts, texts[::-1], texts[30:] + texts[:30], texts[::2] + texts[1::2]]
    found = {}

    def work(place):
        try:
            found[place] = embed(orders[place], MODEL)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = dict(zip(texts, embed(texts, MODEL), strict=True))
    assert CachedEmbedding.objects.count() == 60
    for place, order in enumerate(orders):
        assert np.allclose(found[place], [expected[text] for text in order], atol=2e-3)

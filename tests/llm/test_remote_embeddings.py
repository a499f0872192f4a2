"""Embeddings from a server, over real HTTP."""

from __future__ import annotations

import base64
import socket

import numpy as np
import pytest

from llm.embedding import EmbeddingModel, embed
from llm.embedding.remote import BATCH_TEXTS
from llm.errors import EmbedderMisconfigured, EmbedderUnavailable
from llm.models import Usage
from tests.llm.conftest import KEY
from tests.model_server import (
    EMBEDDINGS,
    RETRY_AFTER_S,
    CutOff,
    Json,
    NotJson,
    Slow,
    Status,
    embedding_of,
)

pytestmark = pytest.mark.django_db

TEXTS = ["The tram stops by the mill.", "Yesterday it rained.", "The tram stops at the mill."]


@pytest.fixture
def model(model_server, settings):
    settings.LLM_MAX_RETRIES = 1
    settings.LLM_TIMEOUT_S = 5
    return EmbeddingModel(model_server.base_url, "nomic-embed-text", 384, api_key=KEY)


def vectors_answer(vectors, **usage):
    data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return Json({"object": "list", "data": data, "model": "m", "usage": usage})


def test_texts_become_unit_vectors_in_order_and_are_metered(model, model_server, alice):
    vectors = embed(TEXTS, model, owner_id=alice.pk)
    expected = [embedding_of(text, 384) for text in TEXTS]
    assert np.allclose(vectors, expected, atol=1e-3)
    assert vectors[0] @ vectors[2] > vectors[0] @ vectors[1] + 0.3
    (request,) = model_server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "nomic-embed-text",
        "input": TEXTS,
        "encoding_format": "float",
    }
    usage = Usage.objects.get()
    assert (usage.owner, usage.purpose, usage.tokens_in) == (alice, "memory_embed", 15)
    assert usage.cost_usd is None


def test_what_is_cached_is_not_asked_again(model, model_server):
    first = embed(TEXTS, model)
    assert (embed(TEXTS, model) == first).all()
    assert len(model_server.requests) == 1


def test_many_texts_go_in_batches_and_are_one_row_of_usage(model, model_server):
    texts = [f"Parcel {number} is on its way." for number in range(BATCH_TEXTS * 2 + 3)]
    vectors = embed(texts, model)
    assert [len(request.body["input"]) for request in model_server.requests] == [64, 64, 3]
    assert np.allclose(vectors[-1], embedding_of(texts[-1], 384), atol=1e-3)
    assert Usage.objects.get().tokens_in == len(texts) * 6


def test_dimensions_are_asked_for_where_a_model_can_be_shortened(model_server):
    model = EmbeddingModel(model_server.base_url, "text-embedding-3-small", 256)
    assert embed(TEXTS, model).shape == (3, 256)
    assert model_server.requests[0].body["dimensions"] == 256
    assert Usage.objects.get().cost_usd > 0


def test_base64_and_any_order_and_length_are_understood(model, model_server):
    rng = np.random.default_rng(1)
    raw = (rng.standard_normal((3, 384)) * 7).astype("<f4")
    data = [
        {"index": place, "embedding": base64.b64encode(raw[place].tobytes()).decode()}
        for place in (2, 0, 1)
    ]
    model_server.script([Json({"data": data})], path=EMBEDDINGS)
    vectors = embed(TEXTS, model)
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.allclose(vectors, expected, atol=1e-3)
    assert Usage.objects.get().tokens_in > 10  # Estimated: the server did not count.


def test_vectors_without_index_are_taken_as_they_come(model, model_server):
    data = [{"embedding": embedding_of(text, 384)} for text in TEXTS]
    model_server.script([Json({"data": data})], path=EMBEDDINGS)
    assert np.allclose(embed(TEXTS, model), [row["embedding"] for row in data], atol=1e-3)


def test_an_empty_text_is_not_sent_as_one(model, model_server):
    embed(["", "  ", "word"], model)
    assert all(text.strip() for text in model_server.requests[0].body["input"])


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(model, model_server, status):
    model_server.script([Status(status, retry_after_s=RETRY_AFTER_S)], path=EMBEDDINGS)
    assert embed(TEXTS, model).shape == (3, 384)
    assert len(model_server.requests) == 2


GOOD = embedding_of("word", 384)


@pytest.mark.some(5)
@pytest.mark.parametrize(
    "reply",
    [
        Status(429),
        Status(500),
        Slow(5),
        CutOff(),
        NotJson(),
        NotJson("{", "application/json"),
        Json({"nothing": 1}),
        Json({"data": [{"index": 0}, {"index": 1}, {"index": 2}]}),
        Json({"data": [1, 2, 3]}),
        vectors_answer([GOOD, GOOD]),
        vectors_answer([GOOD, GOOD, [0.0] * 384]),
        vectors_answer([GOOD, GOOD, ["x"] * 384]),
        vectors_answer([GOOD, GOOD, "?"]),
    ],
    ids=lambda reply: str(reply)[:40],
)
def test_a_server_that_fails_or_talks_nonsense_is_unavailable(model, model_server, settings, reply):
    settings.LLM_TIMEOUT_S = 0.3
    model_server.script([reply] * 2, path=EMBEDDINGS)
    with pytest.raises(EmbedderUnavailable) as raised:
        embed(TEXTS, model)
    assert str(raised.value).endswith(".")
    assert Usage.objects.get().outcome == "embedder_unavailable"


def test_a_server_that_is_not_there_is_unavailable(settings):
    settings.LLM_MAX_RETRIES = 0
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(EmbedderUnavailable, match="is its address"):
            embed(TEXTS, EmbeddingModel(address, "any", 384))


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(401, "refused the API key"), (403, "key's rights"), (404, "check the model's name")],
)
def test_a_wrong_setting_is_reported_with_what_to_set(model, model_server, status, sentence):
    model_server.script([Status(status, f"Wrong: {KEY}")], path=EMBEDDINGS)
    with pytest.raises(EmbedderMisconfigured, match=sentence) as raised:
        embed(TEXTS, model)
    assert "LOCI_EMBEDDING_API_KEY" in str(raised.value)
    assert KEY not in str(raised.value)
    assert len(model_server.requests) == 1
    assert Usage.objects.get().outcome == "embedder_misconfigured"


def test_a_wrong_dimension_is_reported_with_the_right_one(model, model_server):
    model_server.dimensions = 768
    with pytest.raises(EmbedderMisconfigured, match="LOCI_EMBEDDING_DIMENSIONS to 768"):
        embed(TEXTS, model)


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        ("nowhere", "is unknown"),
        ("openai", "needs an API key"),
        ("azure", "YOUR-RESOURCE"),
    ],
)
def test_an_impossible_provider_is_reported_without_calling(provider, sentence):
    with pytest.raises(EmbedderMisconfigured, match=sentence):
        embed(TEXTS, EmbeddingModel(provider, "text-embedding-3-small", 1536))


def test_one_text_over_the_limit_does_not_keep_its_neighbours_out(model, model_server):
    limit = 1000

    def strict(request):
        if any(len(text) > limit for text in request.body["input"]):
            return Status(400, "maximum context length exceeded")
        return Json(model_server._embeddings(request.body))

    long = "lantern " * 400
    texts = ["A short one.", long, "Another.", "And a last one."]
    model_server.script([strict] * 40, path=EMBEDDINGS)
    vectors = embed(texts, model)
    assert vectors.shape == (4, 384)
    assert vectors[1] @ np.array(embedding_of("lantern", 384)) > 0.99
    assert np.allclose(vectors[3], embedding_of(texts[3], 384), atol=1e-3)


def test_a_server_that_refuses_everything_is_not_asked_for_ever(model, model_server):
    model_server.script([Status(400)] * 1000, path=EMBEDDINGS)
    with pytest.raises(EmbedderMisconfigured, match="status 400"):
        embed([f"Text {number}." for number in range(200)], model)
    assert len(model_server.requests) <= 8

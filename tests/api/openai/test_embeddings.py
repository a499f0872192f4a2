"""OpenAI's client asks for embeddings: they are the local model's."""

from __future__ import annotations

import numpy as np
import openai
import pytest

from api.openai.views import MOST_CHARS, MOST_TEXTS
from llm.embedding import deployment_model, embed
from llm.models import CachedEmbedding, Usage
from settings_app.api_keys import AuditLine

TEXTS = ["She feeds the otters at the aquarium.", "The budget of the year 2031."]


def test_both_forms_hold_the_vectors_that_memories_have(program, alice):
    packed = program.embeddings.create(model="loci", input=TEXTS)  # In base64, as it asks.
    plain = program.embeddings.create(
        model="all-MiniLM-L6-v2", input=TEXTS[0], encoding_format="float"
    )
    assert packed.model == plain.model == "all-MiniLM-L6-v2"
    assert [each.index for each in packed.data] == [0, 1]
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding)
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > plain.usage.total_tokens > 5
    assert not CachedEmbedding.objects.exists()
    assert not AuditLine.objects.exists()
    assert {each.owner for each in Usage.objects.all()} == {alice}
    expected = embed(TEXTS, deployment_model())
    assert np.allclose([each.embedding for each in packed.data], expected)


@pytest.mark.exhaustive
def test_langchain_embeds_with_it(program):
    # Not at the top: each process that collects tests would import it, for most of a second.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415

    langchain = OpenAIEmbeddings(
        base_url=str(program.base_url),
        api_key=program.api_key,
        model="loci",
        check_embedding_ctx_length=False,
    )
    near, far = langchain.embed_documents(TEXTS)
    asked = langchain.embed_query("What does she feed?")
    assert np.dot(asked, near) > np.dot(asked, far) + 0.2


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"input": []}, "a string, or a list"),
        ({"input": {"text": "Hi"}}, "a string, or a list"),
        ({"input": ["Hi", " "]}, r"input\[1\] is empty"),
        ({"input": [[101, 102]]}, "the text itself"),
        ({"input": [101, 102]}, "the text itself"),
        ({"input": "a" * (MOST_CHARS + 1)}, "Split it"),
        ({"input": ["a"] * (MOST_TEXTS + 1)}, f"up to {MOST_TEXTS} texts"),
        ({"input": "Hi", "dimensions": 256}, "leave dimensions out"),
        ({"input": "Hi", "encoding_format": "hex"}, "float or base64"),
        ({"input": "Hi", "encoding_format": 0}, "float or base64"),
    ],
    ids=str,
)
def test_what_cannot_be_embedded_is_refused_with_what_to_do(program, wrong, said):
    with pytest.raises(openai.BadRequestError, match=said) as caught:
        program.embeddings.create(**{"model": "loci", **wrong})
    assert caught.value.param


def test_another_models_vectors_are_not_pretended(program):
    with pytest.raises(openai.NotFoundError, match="all-MiniLM-L6-v2") as caught:
        program.embeddings.create(model="text-embedding-3-small", input="Hi")
    assert caught.value.code == "model_not_found"


def test_many_texts_count_as_several_requests(program, settings):
    settings.API_RATE = "4/minute"
    many = ["She feeds the otters at the aquarium. " * 30] * 64
    program.embeddings.create(model="loci", input="Hi")
    with pytest.raises(openai.RateLimitError) as caught:
        program.embeddings.create(model="loci", input=many)
    assert caught.value.response.headers["Retry-After"]

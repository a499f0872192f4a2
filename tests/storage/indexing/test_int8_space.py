"""The local model with integer products is another one: its vectors never meet the usual ones'."""

from __future__ import annotations

import numpy as np
import pytest
from django.core.management import call_command

from language.errors import EmbeddingMismatch
from llm.embedding.local_models import INT8_NAME, MODEL_NAME
from llm.models import CachedEmbedding, Usage
from palace.mining.pipeline import mine
from palace.models import Fact, Passage
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing.spaces import active_space, verify
from tests.conversations import BATTERY, SOURDOUGH

QUESTION = "silicone wire overheated"


def vectors(space):
    passages = Passage.objects.filter(space=space).order_by("drawer", "ordinal")
    found = passages.values_list("embedding", flat=True)
    return np.array(list(found), dtype=np.float32)


def models_asked():
    return list(Usage.objects.order_by("pk").values_list("model", flat=True))


def test_a_palace_of_the_usual_model_refuses_it(palace, settings):
    mine(palace, BATTERY)
    settings.EMBEDDING_MODEL = INT8_NAME
    with pytest.raises(EmbeddingMismatch, match=r"manage\.py reembed"):
        verify()


def test_reembedding_changes_every_vector_and_none_comes_from_the_cache(palace, settings):
    mine(palace, BATTERY)
    mine(palace, SOURDOUGH)
    usual = active_space()
    before, cached = vectors(usual), CachedEmbedding.objects.count()
    settings.EMBEDDING_MODEL = INT8_NAME
    # Until all is embedded again, questions are read by the model that the palace is in.
    Usage.objects.all().delete()
    recall(palace, RecallRequest(QUESTION))
    assert models_asked() == [MODEL_NAME]
    call_command("reembed")
    verify()
    assert active_space().model == INT8_NAME
    after = vectors(active_space())
    cosines = np.sum(before * after, axis=1)
    assert len(cosines) == 8
    assert ((cosines > 0.97) & (cosines < 0.99999)).all()
    episodes, facts = 2, Fact.objects.count()
    assert CachedEmbedding.objects.count() == cached + episodes + facts
    Usage.objects.all().delete()
    assert recall(palace, RecallRequest(QUESTION)).hits[0].drawer.text == BATTERY.turns[0].text
    assert models_asked() == [INT8_NAME]

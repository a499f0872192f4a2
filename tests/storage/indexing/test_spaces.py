from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from language.errors import EmbeddingMismatch
from llm.embedding import deployment_model
from palace.knowledge.facts.fact_learning import remember
from palace.mining.pipeline import mine
from palace.models import EmbeddingSpace, Passage
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing import episode_vectors, fact_vectors, rebuild
from palace.storage.indexing.spaces import active_space, space_for, verify
from tests.conversations import BATTERY, SOURDOUGH, long_transcript


@pytest.fixture
def other_model(settings, model_server):
    """The operator now names another model, of another dimension."""

    def choose():
        settings.EMBEDDING_PROVIDER = model_server.base_url
        settings.EMBEDDING_MODEL = "other-model"
        settings.EMBEDDING_DIMENSIONS = model_server.dimensions = 96
        settings.EMBEDDING_API_KEY = "key"

    return choose


def test_settings_that_agree_may_go_on(palace):
    mine(palace, BATTERY)
    verify()


def test_another_model_is_refused_with_its_cure(palace, other_model):
    mine(palace, BATTERY)
    other_model()
    with pytest.raises(EmbeddingMismatch, match=r"manage.py reembed.*LOCI_EMBEDDING_MODEL=all"):
        verify()


def test_reembedding_switches_models_and_recall_goes_on(palace, other_model):
    mine(palace, BATTERY)
    mine(palace, SOURDOUGH)
    old = active_space()
    other_model()
    assert (
        recall(palace, RecallRequest("silicone wire overheated")).hits[0].drawer.text
        == BATTERY.turns[0].text
    )
    call_command("reembed")
    assert active_space().model == "other-model"
    assert active_space() != old
    verify()
    assert not Passage.objects.filter(space=old).exists()
    assert Passage.objects.filter(space=active_space()).exclude(embedding=None).count() == 8
    hit = recall(palace, RecallRequest("silicone wire overheated")).hits[0]
    assert hit.drawer.text == BATTERY.turns[0].text
    assert "meaning" in hit.signals


def test_reembedding_goes_on_where_it_was_stopped(palace, other_model):
    mine(palace, BATTERY)
    old = active_space()
    other_model()
    space = space_for(deployment_model())
    steps = rebuild.build_space(space, batch=3)
    assert next(steps) == 3
    steps.close()
    assert active_space() == old
    assert rebuild.drawers_lacking(space) == 1
    assert sum(rebuild.build_space(space, batch=3)) == 1
    assert list(rebuild.build_space(space, batch=3)) == []


def test_what_is_mined_meanwhile_is_taken_along(palace, other_model):
    mine(palace, BATTERY)
    other_model()
    space = space_for(deployment_model())
    steps = rebuild.build_space(space)
    next(steps)
    mine(palace, SOURDOUGH)
    assert sum(steps) == 4


def test_only_one_space_is_active(db):
    first = active_space()
    second = EmbeddingSpace.objects.create(provider="x", model="y", dimensions=3)
    rebuild.activate(second)
    assert list(EmbeddingSpace.objects.filter(active=True)) == [second]
    rebuild.activate(first)
    assert list(EmbeddingSpace.objects.filter(active=True)) == [first]


def beside(work):
    """Run it in another thread to its end; what it raises is raised here."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(closing(work)).result()


def closing(work):
    def run():
        try:
            return work()
        finally:
            connection.close()

    return run


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_two_that_reembed_at_once_share_the_work(palace, other_model):
    mine(palace, long_transcript(40))
    for number in range(8):
        remember(palace, f"I own {number + 2} bicycles in town {number}.")
    other_model()
    space = space_for(deployment_model())
    with ThreadPoolExecutor(4) as pool:
        # The smaller the batches, the likelier one run finds that others have done its own.
        build = closing(lambda: list(rebuild.build_space(space, batch=1)))
        for run in [pool.submit(build) for _ in range(4)]:
            run.result()
    assert Passage.objects.filter(space=space).count() == 40
    assert not episode_vectors.first_lacking(space, 1)
    assert not fact_vectors.first_lacking(space, 1)


@pytest.mark.django_db(transaction=True)
def test_what_is_mined_while_models_are_switched_is_found_in_the_new_one(
    palace, other_model, settings, model_server
):
    mine(palace, BATTERY)
    settings.LLM_PROVIDER = model_server.base_url
    settings.LLM_MODEL, settings.LLM_API_KEY, settings.LLM_MAX_RETRIES = "small-model", "key", 0

    def switch(request):
        other_model()
        beside(lambda: call_command("reembed"))
        return "no JSON"

    # By the time the conversation is read, it has been embedded with the old model.
    model_server.script([switch])
    mine(palace, SOURDOUGH)
    assert active_space().model == "other-model"
    assert Passage.objects.filter(space=active_space()).count() == 8
    assert not Passage.objects.exclude(space=active_space()).exists()


@pytest.mark.django_db(transaction=True)
def test_what_was_mined_last_into_the_old_space_is_taken_along(palace, other_model):
    mine(palace, BATTERY)
    other_model()
    space = space_for(deployment_model())
    list(rebuild.build_space(space))
    mine(palace, SOURDOUGH)
    rebuild.switch_to_space(space)
    assert Passage.objects.filter(space=space).count() == Passage.objects.count() == 8


def test_settings_that_agree_pass(palace):
    mine(palace, BATTERY)
    call_command("check", databases=["default"])


def test_another_embedding_model_is_refused_with_its_cure(palace, settings):
    mine(palace, BATTERY)
    settings.EMBEDDING_PROVIDER = "openai"
    settings.EMBEDDING_MODEL = "text-embedding-3-small"
    settings.EMBEDDING_DIMENSIONS = 1536
    settings.EMBEDDING_API_KEY = "key"
    with pytest.raises(SystemCheckError, match=r"manage\.py reembed"):
        call_command("check", databases=["default"])

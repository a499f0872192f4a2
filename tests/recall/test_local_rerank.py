"""The server's own reranker puts what was found in order, where no model of language does."""

from __future__ import annotations

import shutil

import pytest

from llm.models import Usage
from palace.recall.model_stages import PROMOTED
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from settings_app.models import MemorySettings
from tests.conversations import transcript
from tests.furnished_palaces import furnish_with
from tests.llm import rerankers
from tests.model_server import Status

QUESTION = "wire"
# How often each says it.
COUNTS = [3, 1, 7, 2, 6, 5, 4]


@pytest.fixture
def lived_in(palace):
    notes = (
        transcript(f"Note {number} says {'wire ' * count}and no more.", id=str(number))
        for number, count in enumerate(COUNTS)
    )
    return furnish_with(palace, *notes)


@pytest.fixture
def folder(tmp_path, settings):
    made = rerankers.make_folder(tmp_path / "overlap", rerankers.overlap())
    settings.RERANKER_PATH = str(made)
    return made


def chooses(palace, **choices):
    return MemorySettings.objects.create(owner=palace.owner, use_rerank=True, **choices)


def counts(found):
    return [hit.drawer.text.count("wire") for hit in found.hits]


def test_the_five_rated_best_come_first_and_the_others_by_their_scores(lived_in, folder):
    before = recall(lived_in, RecallRequest(QUESTION, top_k=7))
    chooses(lived_in)
    found = recall(lived_in, RecallRequest(QUESTION, top_k=7))
    others = [count for count in counts(before) if count <= len(COUNTS) - PROMOTED]
    assert counts(found) == [7, 6, 5, 4, 3, *others]
    assert [counts(before)[hit.place_before - 1] for hit in found.hits] == counts(found)
    assert found.notes == ()
    usage = Usage.objects.get(purpose="memory_rerank")
    assert (usage.provider, usage.model, usage.owner) == ("local", "overlap", lived_in.owner)
    assert (usage.outcome, usage.cost_usd) == ("ok", 0)


def test_one_below_top_k_can_be_promoted_into_it(lived_in, folder):
    assert counts(recall(lived_in, RecallRequest(QUESTION, top_k=1, rerank=True))) == [7]


@pytest.mark.parametrize(("chosen", "wanted", "times"), [(0, None, 0), (1, False, 0), (0, True, 1)])
def test_it_rates_only_where_that_is_wanted(lived_in, folder, chosen, wanted, times):
    MemorySettings.objects.create(owner=lived_in.owner, use_rerank=bool(chosen))
    recall(lived_in, RecallRequest(QUESTION, rerank=wanted))
    assert Usage.objects.filter(purpose="memory_rerank").count() == times


def test_a_model_that_is_chosen_goes_before_it(lived_in, folder, model_server):
    chooses(lived_in, provider=model_server.base_url, model="cheap")
    model_server.answer('{"order": [2, 1]}')
    found = recall(lived_in, RecallRequest(QUESTION))
    assert [hit.place_before for hit in found.hits[:2]] == [2, 1]
    assert Usage.objects.get(purpose="memory_rerank").model == "cheap"


def test_without_a_model_by_choice_the_local_reranker_works(
    lived_in, folder, settings, model_server
):
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "the operators"
    chooses(lived_in, provider=MemorySettings.NO_MODEL)
    assert counts(recall(lived_in, RecallRequest(QUESTION))) == [7, 6, 5, 4, 3]
    assert model_server.requests == []


def test_it_stands_in_for_a_model_that_cannot_be_asked(lived_in, folder):
    chooses(lived_in, provider="openai", model="some-model")
    found = recall(lived_in, RecallRequest(QUESTION))
    assert counts(found) == [7, 6, 5, 4, 3]
    [note] = found.notes
    assert note.startswith("This server’s reranker is used, because the model is unavailable:")
    assert "OpenAI needs an API key" in note


def test_it_does_not_add_its_time_to_that_of_a_model_that_failed(lived_in, folder, model_server):
    before = recall(lived_in, RecallRequest(QUESTION))
    chooses(lived_in, provider=model_server.base_url, model="cheap")
    model_server.answer(Status(500))
    found = recall(lived_in, RecallRequest(QUESTION))
    assert counts(found) == counts(before)
    assert "ordered by score" in found.notes[0]


def left_as_it_was(palace):
    before = recall(palace, RecallRequest(QUESTION, rerank=False))
    found = recall(palace, RecallRequest(QUESTION, rerank=True))
    assert counts(found) == counts(before)
    assert {hit.place_before for hit in found.hits} == {None}
    [note] = found.notes
    assert note.startswith("The hits are ordered by score, not by a model: ")
    return note


def test_one_that_is_gone_since_the_start_is_a_note(lived_in, folder, caplog):
    shutil.rmtree(folder)
    assert "There is no folder" in left_as_it_was(lived_in)
    assert "not reranked" in caplog.text


def test_one_that_is_damaged_since_the_start_is_a_note(lived_in, folder):
    (folder / "model.onnx").write_bytes(b"torn")
    assert "cannot be run" in left_as_it_was(lived_in)


def test_one_that_breaks_off_is_a_note(lived_in, tmp_path, settings):
    made = rerankers.make_folder(tmp_path / "short", rerankers.short_sighted(most=5))
    settings.RERANKER_PATH = str(made)
    assert "The reranker short broke off: " in left_as_it_was(lived_in)


def test_a_slow_one_is_not_waited_for(lived_in, tmp_path, settings):
    made = rerankers.make_folder(tmp_path / "slow", rerankers.slow())
    settings.RERANKER_PATH = str(made)
    settings.RERANK_TIMEOUT_S = 0.2
    assert "The reranker slow was not done in time." in left_as_it_was(lived_in)
    assert Usage.objects.get(purpose="memory_rerank").outcome == "reranker_unavailable"

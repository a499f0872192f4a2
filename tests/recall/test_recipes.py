"""Recipes: named configurations of recall, whether a caller or the owner chooses."""

from __future__ import annotations

import json
import re

import pytest

from bench.recall_training import KINDS, OF_MEANING
from palace.mining.pipeline import mine
from palace.models import RecollectionTrace
from palace.recall import E5, MINILM
from palace.recall.candidates import find_candidates
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.recipes import LEARNT_FOLDER, RECIPES, Recipe, trained_weights
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.scoring import features
from palace.recall.semantic import by_meaning
from palace.storage.indexing.spaces import active_space
from settings_app import memory_form
from settings_app.models import MemorySettings, settings_of
from tests.conversations import EVERYTHING, START, long_transcript
from tests.furnished_palaces import furnish_with

PLAIN = Recipe(
    "plain",
    {"meaning.best": 1.0, "meaning.first": 0.5, "words.message": 2.0},
    {"times": {"words.message": 0.5, "time.said": 9.0}, "names": {"words.message": -1.0}},
)


@pytest.fixture
def lived_in(palace):
    return furnish_with(palace, *EVERYTHING)


@pytest.fixture
def chosen(lived_in):
    def choose(recipe):
        MemorySettings.objects.update_or_create(owner=lived_in.owner, defaults={"recipe": recipe})

    return choose


def used(palace, question="silicone wire", **options):
    """The recipe that a recall goes on record with."""
    found = recall(palace, RecallRequest(question, **options))
    assert found.hits
    return RecollectionTrace.objects.get(palace=palace, uuid=found.uuid).recipe


def test_a_kind_of_question_adds_to_the_weights():
    assert PLAIN.weights_for(()) == PLAIN.weights
    assert PLAIN.weights_for(["times"])["words.message"] == 2.5
    assert PLAIN.weights_for(["times", "names"])["words.message"] == 1.5
    assert PLAIN.weights_for(["a kind nobody learnt"]) == PLAIN.weights


def test_a_kind_of_question_brings_no_feature_the_recipe_does_without():
    assert set(PLAIN.weights_for(["times"])) == set(PLAIN.weights)


def test_without_takes_out_whole_signals_or_single_features():
    assert PLAIN.without(["meaning"]).weights == {"words.message": 2.0}
    assert set(PLAIN.without(["meaning.first"]).weights) == {"meaning.best", "words.message"}
    assert PLAIN.without(["mean", "time"]).weights == PLAIN.weights
    assert PLAIN.without([]) == PLAIN


def test_there_are_five_recipes():
    assert set(RECIPES) == {"default", "fast", "keyword", "rerank", "facts-first"}
    assert [name for name, recipe in RECIPES.items() if recipe.rerank] == ["rerank"]
    assert [name for name, recipe in RECIPES.items() if not recipe.by_meaning] == ["keyword"]


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_finds_what_was_said(lived_in, name):
    found = recall(lived_in, RecallRequest("silicone wire overheated", recipe=name))
    assert found.hits[0].drawer.text == EVERYTHING[0].turns[0].text
    assert RecollectionTrace.objects.get(uuid=found.uuid).recipe == name


def test_words_alone_embed_nothing(lived_in):
    read = read_query(
        lived_in, active_space(), "silicone wire", now=START, as_of=None, by_meaning=False
    )
    assert (read.vector, read.adapted, read.note) == (None, None, "")
    hit = recall(lived_in, RecallRequest("silicone wire", recipe="keyword")).hits[0]
    assert not {"meaning", "agreement"} & hit.signals.keys()


def test_quick_looks_at_fewer_drawers(palace):
    mine(palace, long_transcript(400))
    looked_at = {}
    for name in ("default", "fast"):
        found = recall(palace, RecallRequest("Which brake squeals on hills?", recipe=name))
        trace = RecollectionTrace.objects.get(uuid=found.uuid)
        looked_at[name] = trace.figures["looked_at"]
        assert "brake" in found.hits[0].drawer.text
    assert looked_at["fast"] < looked_at["default"]


def test_unless_a_caller_names_one_the_owners_choice_is_used(lived_in, chosen):
    assert used(lived_in) == "default"
    chosen("keyword")
    assert used(lived_in) == "keyword"
    assert used(lived_in, recipe="fast") == "fast"
    assert used(lived_in, recipe="default") == "default"


@pytest.mark.parametrize("stored", ["of-last-year", "", "Default"])
def test_a_choice_there_is_no_longer_counts_as_the_default(lived_in, chosen, stored):
    chosen(stored)
    assert used(lived_in) == "default"


def test_every_choice_of_the_settings_is_a_recipe(alice):
    offered = [each.value for each in memory_form.RECIPES]
    assert set(offered) == set(RECIPES) - {"rerank"}
    assert settings_of(alice.pk).recipe == offered[0] == "default"


@pytest.fixture
def names(lived_in):
    """Of the features that recall computes."""
    space = active_space()
    query = read_query(lived_in, space, "wire", now=START, as_of=None, by_meaning=True)
    meaning = by_meaning(lived_in, space, query.adapted)
    words = by_words(lived_in, query.terms)
    return list(features(query, find_candidates(lived_in, query, meaning, words), meaning, words))


def test_what_is_shipped_weighs_exactly_the_features_there_are(names):
    assert set(trained_weights(MINILM)["weights"]) == set(names)
    assert set(trained_weights("by-words")["weights"]) == set(names) - set(OF_MEANING)


def test_a_recipe_has_the_weights_of_the_embedder_in_use():
    recipe = RECIPES["default"]
    assert recipe.fitted_to(MINILM) == recipe.fitted_to("") == recipe
    fitted = recipe.fitted_to(E5)
    assert fitted.weights["meaning.best"] == trained_weights(E5)["weights"]["meaning.best"]
    assert fitted.weights != recipe.weights
    by_words = RECIPES["keyword"]
    assert by_words.fitted_to(E5) == by_words


@pytest.mark.parametrize("name", [MINILM, E5, "by-words"])
def test_what_is_shipped_adds_to_the_same_features_by_kinds_a_question_can_have(name):
    numbers = trained_weights(name)
    assert list(numbers["more"]) == list(KINDS)
    assert all(more.keys() <= numbers["weights"].keys() for more in numbers["more"].values())


@pytest.mark.parametrize("name", [MINILM, E5, "by-words"])
def test_what_is_shipped_says_what_it_was_learnt_from(name):
    source = json.loads((LEARNT_FOLDER / f"{name}.json").read_text())["learnt_from"]
    assert isinstance(source["seed"], int)
    assert source["questions"].keys() == source["data"].keys() | source["unseen"].keys()
    assert not source["data"].keys() & {"locomo", "beam"}, "Their licences do not allow it."
    assert all(number > 0 for number in source["questions"].values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", checksum) for checksum in source["data"].values())
    figures = source["figures_of_people_left_out"] | source["figures_of_unseen"]
    assert source["figures_of_people_left_out"].keys() == source["data"].keys()
    assert figures.keys() == source["questions"].keys()
    assert all(0 <= value <= 1 for row in figures.values() for value in row.values())


def test_a_kind_that_was_learnt_is_one_that_questions_have(lived_in):
    kinds = set()
    for question in (
        "What did Derek say in Lisbon?",
        "What happened yesterday?",
        "Can you recommend a cake?",
        "What are all the things we talked about?",
        "What did I say about walnuts?",
        "What did you suggest to me?",
    ):
        kinds |= set(
            read_query(
                lived_in, active_space(), question, now=START, as_of=None, by_meaning=False
            ).kinds
        )
    assert kinds == set(KINDS)

"""Signals: what each gives a drawer, and that together they are its score."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.english.message_traits import read_traits
from palace.mining.pipeline import mine
from palace.models import Drawer
from palace.recall.candidates import find_candidates
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.recipes import RECIPES, SIGNALS
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.scoring import LEARNT, agreement, features, fuse, ranking
from palace.recall.semantic import by_meaning, look_up
from palace.storage.indexing.spaces import active_space
from tests.conversations import EVERYTHING, SOURDOUGH, START, transcript
from tests.furnished_palaces import furnish_with

QUESTIONS = (
    "silicone wire overheated",
    "What did Derek say in Lisbon last March?",
    "Can you recommend a cake recipe for the weekend?",
    'Who said "two summers"?',
    "List everything I bake.",
)
QUILL = transcript(
    "What is the name of the parrot that Nora adopted?",
    "Go on.",
    "Nora adopted a parrot on Tuesday, and his name is Quill.",
    id="parrot",
)
CELLO = transcript(
    "When did Amira start to play the cello?",
    "Go on.",
    "Amira started to play the cello in 2019, in Ghent, because of her aunt.",
    id="cello",
)
ASKED_AGAIN = [
    ("What is Nora's parrot called?", QUILL),
    ("Since when has Amira played the cello?", CELLO),
]
KITES = transcript(
    "We flew the red kite over the long field all morning.",
    "Over the field flew long kites, and the morning was red.",
    "The kite shop is closed in the morning.",
    id="kites",
)


@pytest.fixture
def lived_in(palace):
    return furnish_with(palace, *EVERYTHING)


@pytest.fixture
def look(palace):
    """The candidates of a question with their features, by text."""

    def of(question):
        space = active_space()
        query = read_query(palace, space, question, now=START, as_of=None, by_meaning=True)
        meaning, words = by_meaning(palace, space, query.adapted), by_words(palace, query.terms)
        candidates = find_candidates(palace, query, meaning, words)
        meaning = meaning.with_all(candidates.with_neighbours())
        return candidates, features(query, candidates, meaning, words)

    return of


@pytest.fixture
def feature(look):
    """One feature of every candidate, by its text."""

    def of(question, name):
        candidates, values = look(question)
        texts = dict(Drawer.objects.values_list("pk", "text"))
        keys = [texts[key] for key in candidates.drawers.tolist()]
        return dict(zip(keys, values[name].tolist(), strict=True))

    return of


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("recipe", ["default", "fast", "keyword"])
def test_the_shares_of_a_hit_add_up_to_its_score(lived_in, question, recipe):
    hits = recall(
        lived_in, RecallRequest(question, recipe=recipe, top_k=20, now=START + timedelta(30))
    ).hits
    assert hits
    for hit in hits:
        assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-4)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_feature_is_a_finite_number_for_every_candidate(lived_in, look, question):
    candidates, values = look(question)
    for name, column in values.items():
        assert column.shape == (len(candidates),), name
        assert np.isfinite(column).all(), name


def test_every_signal_has_a_name_and_an_explanation_for_people(lived_in, look):
    _, values = look("wires")
    assert {name.partition(".")[0] for name in values} == SIGNALS.keys()


def test_agreement_is_where_both_are_above_the_mean():
    first = np.array([2, 2, -2, -2, 0, 1], np.float32)
    second = np.array([3, -3, 3, -3, 5, 0.5], np.float32)
    assert agreement(first, second).tolist() == [6, 0, 0, 0, 0, 0.5]


def test_a_statements_traits_are_those_of_the_text(lived_in, look, feature):
    candidates, values = look("bread and wires")
    texts = dict(Drawer.objects.values_list("pk", "text"))
    for trait in LEARNT:
        expected = [float(trait in read_traits(texts[key])) for key in candidates.drawers.tolist()]
        assert values[f"statement.{trait.name}".lower()].tolist() == expected
    asks = feature("bread and wires", "statement.ends_asking")
    assert asks[SOURDOUGH.turns[0].text] == 1
    assert asks[SOURDOUGH.turns[2].text] == 0


@pytest.mark.parametrize("recipe", ["default", "fast", "keyword"])
@pytest.mark.parametrize(("question", "talk"), ASKED_AGAIN)
def test_a_question_said_before_does_not_outrank_its_answer(lived_in, question, talk, recipe):
    mine(lived_in, talk)
    found = recall(lived_in, RecallRequest(question, recipe=recipe, top_k=100))
    texts = [hit.drawer.text for hit in found.hits]
    assert texts.index(talk.turns[2].text) < texts.index(talk.turns[0].text)


@pytest.mark.parametrize(("question", "talk"), ASKED_AGAIN)
def test_it_is_the_traits_that_tell_them_apart(lived_in, question, talk):
    mine(lived_in, talk)
    hits = {
        hit.drawer.text: hit for hit in recall(lived_in, RecallRequest(question, top_k=100)).hits
    }
    asked, answer = (hits[talk.turns[place].text] for place in (0, 2))
    assert asked.signals["statement"] < 0 < answer.signals["statement"]
    assert asked.score - asked.signals["statement"] > answer.score - answer.signals["statement"]


@pytest.mark.parametrize(
    "question",
    ['Who said "red kite over the long field"?', "Who said “Red Kite over the LONG field”?"],
)
def test_what_is_quoted_is_found_word_by_word(lived_in, feature, question):
    mine(lived_in, KITES)
    quoted = feature(question, "words.quoted")
    assert quoted[KITES.turns[0].text] == 1
    assert sum(quoted.values()) == 1
    assert recall(lived_in, RecallRequest(question)).hits[0].drawer.text == KITES.turns[0].text


def test_of_several_quotations_a_drawer_has_its_share(lived_in, feature):
    mine(lived_in, KITES)
    quoted = feature('Who said "red kite" and "kite shop"?', "words.quoted")
    assert quoted[KITES.turns[0].text] == quoted[KITES.turns[2].text] == 0.5


@pytest.mark.parametrize("question", ["red kite over the long field", "Who said nothing?", '""?'])
def test_without_a_quotation_nothing_is_quoted(lived_in, feature, question):
    mine(lived_in, KITES)
    assert set(feature(question, "words.quoted").values()) == {0}


@pytest.mark.parametrize("quoted", ["100%", "a_b", "\\", "' OR 1=1 --", "%", "İstanbul"])
def test_odd_quotations_are_taken_word_by_word_too(palace, feature, quoted):
    mine(palace, transcript(f"It said {quoted} on the door.", "It said aXb and 1000 on the door."))
    found = feature(f'Who said "{quoted}" on the door?', "words.quoted")
    assert found["It said aXb and 1000 on the door."] == 0


def test_full_names_count_word_by_word(palace, feature):
    mine(
        palace,
        transcript("We met Nora Lindqvist there.", "Nora met Ivo Lindqvist there.", id="names"),
    )
    named = feature("When did we meet Nora Lindqvist?", "words.quoted")
    assert named == {"We met Nora Lindqvist there.": 1, "Nora met Ivo Lindqvist there.": 0}


def floats(*values):
    return np.array(values, dtype=np.float32)


FEATURES = {"meaning.best": floats(1, 0, -1), "words.message": floats(0, 2, 1)}


def test_the_score_is_the_sum_of_its_shares():
    shares = fuse(FEATURES, {"meaning.best": 2.0, "words.message": 0.5}, 3)
    assert shares.total().tolist() == [2.0, 1.0, -1.5]
    assert shares.joined("other", floats(1, 1, 1)).total().tolist() == [3.0, 2.0, -0.5]


def test_what_has_no_weight_has_no_share():
    assert fuse(FEATURES, {"meaning.best": 1.0, "words.message": 0.0}, 3).names == ("meaning.best",)
    assert fuse(FEATURES, {}, 3).total().tolist() == [0, 0, 0]


def test_of_equals_the_one_filed_first_comes_first():
    assert ranking(floats(1, 2, 1, 2)).tolist() == [1, 3, 0, 2]


@given(st.lists(st.integers(0, 50), unique=True), st.lists(st.integers(0, 50)))
def test_look_up_finds_what_is_there_and_says_what_is_missing(keys, wanted):
    keys = np.array(sorted(keys), dtype=np.int64)
    found = look_up(keys, keys.astype(np.float32) * 2, np.array(wanted, np.int64), missing=-1)
    expected = [2 * key if key in set(keys.tolist()) else -1 for key in wanted]
    assert found.tolist() == expected


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_a_recipe_weighs_only_signals_there_are(recipe, palace):
    assert recall(palace, RecallRequest("Anything?", recipe=recipe.name)).hits == ()
    assert recipe.by_meaning or not any("meaning" in name for name in recipe.weights)

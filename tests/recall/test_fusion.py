from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace.recall.fusion import fuse, ranking, total
from palace.recall.recall import recall
from palace.recall.recipes import RECIPES
from palace.recall.request import RecallRequest
from palace.recall.semantic import look_up


def floats(*values):
    return np.array(values, dtype=np.float32)


FEATURES = {"meaning.best": floats(1, 0, -1), "words.message": floats(0, 2, 1)}


def test_the_score_is_the_sum_of_its_shares():
    shares = fuse(FEATURES, {"meaning.best": 2.0, "words.message": 0.5})
    assert total(shares, 3).tolist() == [2.0, 1.0, -1.5]


def test_what_has_no_weight_has_no_share():
    assert set(fuse(FEATURES, {"meaning.best": 1.0, "words.message": 0.0})) == {"meaning.best"}
    assert total({}, 3).tolist() == [0, 0, 0]


def test_of_equals_the_one_filed_first_comes_first():
    assert ranking(floats(1, 2, 1, 2), np.array([9, 8, 3, 4])).tolist() == [3, 1, 2, 0]


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

"""Whatever is given as a filter, it is a condition that the database takes, or gets a sentence."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from language.errors import BadFilter
from palace.knowledge.facts.filters import FIELDS, OPERATORS, condition_of
from palace.models import Fact
from tests.factories import FactFactory
from tests.hypothesis_profiles import examples
from tests.knowledge.facts.test_filters import where

ANY_TEXT = st.text(st.characters(codec=None), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | ANY_TEXT
    | st.datetimes()
    | st.datetimes().map(str)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(ANY_TEXT, SCALARS, max_size=2)
NAMES = st.sampled_from(FIELDS) | ANY_TEXT | ANY_TEXT.map("metadata.{}".format)
CONDITIONS = st.builds(where, NAMES | SCALARS, st.sampled_from(OPERATORS) | SCALARS, VALUES)
FILTERS = st.recursive(
    CONDITIONS | VALUES,
    lambda inner: st.dictionaries(
        st.sampled_from(("AND", "OR", "NOT")), inner | st.lists(inner, max_size=3), max_size=2
    ),
    max_leaves=6,
)


def assert_is_a_sentence(text):
    assert text.endswith(".")
    assert "Traceback" not in text


@pytest.fixture
def fact(palace):
    metadata = {"a": 1, "b": "2025-01-01", "c": ["x", 2], "d": {"e": None}}
    return FactFactory(subject__palace=palace, metadata=metadata, tags=["home"])


# Each example only reads.
@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(filters=FILTERS)
def test_it_is_a_condition_or_gets_a_sentence(fact, filters):
    try:
        wanted = condition_of(filters)
    except BadFilter as error:
        assert_is_a_sentence(str(error))
        return
    assert Fact.objects.filter(wanted).count() + Fact.objects.exclude(wanted).count() == 1

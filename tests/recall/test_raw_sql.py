from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolation.raw_sql import default_instance, fetch_rows
from palace.recall.raw_sql import decode_array, isin_sorted, union
from settings_app.models import MemorySettings

pytestmark = pytest.mark.django_db


def sent(array, kind):
    sql = f"SELECT substring(array_send({array}) FROM 21), 'text'"  # noqa: S608 - the tests' own.
    [(data, beside)] = fetch_rows(sql, [])
    assert beside == "text"
    return decode_array(data, kind)


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        ("ARRAY[1, -2, 9223372036854775807]::bigint[]", "i8", [1, -2, 9223372036854775807]),
        ("ARRAY[1, -2, 32767]::smallint[]", "i2", [1, -2, 32767]),
        ("ARRAY[0.5, -2, 'NaN', 'Infinity']::real[]", "f4", [0.5, -2, np.nan, np.inf]),
        ("ARRAY[1, -2, 2147483647]::int[]", "i4", [1, -2, 2147483647]),
        ("ARRAY[0.1, -1e300]::float8[]", "f8", [0.1, -1e300]),
        ("'{}'::bigint[]", "i8", []),
        ("NULL::bigint[]", "i8", []),
        ("'[5:6]={7,8}'::bigint[]", "i8", [7, 8]),
    ],
)
def test_an_array_of_numbers_arrives_as_it_is(array, kind, values):
    found = sent(array, kind)
    assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(found, np.array(values, kind))


def test_several_arrays_strung_together_are_one():
    [(data,)] = fetch_rows(
        "SELECT string_agg(substring(array_send(a) FROM 21), ''::bytea)"
        " FROM (VALUES ('{1,2}'::bigint[]), ('{}'), ('{3}')) arrays (a)",
        [],
    )
    np.testing.assert_array_equal(decode_array(data, "i8"), [1, 2, 3])


def test_a_long_array_arrives_whole():
    [(data,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(n::bigint)) FROM 21) FROM generate_series(1, %s) n",
        [100_000],
    )
    np.testing.assert_array_equal(decode_array(data, "i8"), np.arange(1, 100_001))


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        ("ARRAY[1, NULL, 2]::bigint[]", "i8"),
        ("ARRAY[1, 2, 3]::bigint[]", "i2"),
        ("ARRAY[1, 2, 3]::smallint[]", "i8"),
    ],
)
def test_what_are_other_numbers_is_refused(array, kind):
    with pytest.raises(ValueError, match=r"no numbers of kind|buffer size"):
        sent(array, kind)


KEYS = st.lists(st.integers(0, 20)).map(lambda keys: np.array(keys, np.int64))


@given(KEYS, KEYS)
def test_keys_are_joined_and_looked_up_as_numpy_would(some, others):
    np.testing.assert_array_equal(union(some, others), np.union1d(some, others))
    np.testing.assert_array_equal(isin_sorted(some, np.sort(others)), np.isin(some, others))


@pytest.mark.parametrize("prepared", [True, False])
def test_parameters_arrive_as_they_are(prepared):
    words = ["it's 100 %", 'a "quoted" \\ one', "%s", "$1", "ünï ' -- x"]
    said_at = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
    sql = "SELECT %(words)s::text[], %(said_at)s::timestamptz, 7 %% %(number)s::int"
    parameters = {"words": words, "said_at": said_at, "number": 4}
    assert fetch_rows(sql, parameters, prepared=prepared) == [(words, said_at, 3)]


def test_an_instance_of_defaults_is_as_the_constructor_makes_it():
    own, constructed = default_instance(MemorySettings, owner_id=7), MemorySettings(owner_id=7)
    names = [field.attname for field in MemorySettings._meta.concrete_fields]
    assert {name: own.__dict__[name] for name in names} == {
        name: constructed.__dict__[name] for name in names
    }
    assert (own._state.adding, own._state.db) == (True, None)
    own.uses.clear()
    assert default_instance(MemorySettings).uses == MemorySettings().uses != []

"""The table of drawers keeps no index that another makes superfluous, and is vacuumed early."""

from __future__ import annotations

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

# The columns of each index that holds all drawers.
INDEXED = """
SELECT array_agg(a.attname::text ORDER BY k.place)
FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k (number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = 'palace_drawer'::regclass AND i.indpred IS NULL GROUP BY i.indexrelid
"""


@pytest.mark.parametrize("column", ["room_id", "closet_id"])
def test_drawers_of_a_place_are_found_by_one_index_that_begins_with_the_palace(column):
    with connection.cursor() as cursor:
        cursor.execute(INDEXED)
        indexed = [columns for (columns,) in cursor.fetchall()]
    assert [each for each in indexed if each[0] == column] == []
    assert len([each for each in indexed if each[:2] == ["palace_id", column]]) == 1


def test_places_of_former_versions_are_taken_back_before_they_are_a_fifth_of_the_table():
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE oid = 'palace_drawer'::regclass")
        [(options,)] = cursor.fetchall()
    assert "autovacuum_vacuum_scale_factor=0.02" in options

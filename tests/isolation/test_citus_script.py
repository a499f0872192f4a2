"""`manage.py citus_script`: its preparation runs on plain Postgres; then each key has a palace."""

from __future__ import annotations

from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from config.management.commands.citus_script import (
    _FOREIGN,
    _UNIQUE,
    PALACES,
    distribution,
    preparation,
    spread,
)

pytestmark = pytest.mark.django_db

# A delivery that tries a webhook is of no palace, so its table stays in one place.
IN_ONE_PLACE = {"palace_webhookdelivery"}


def tables_of_palaces():
    """By the models."""
    return {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "palace_id" for field in model._meta.local_fields)
    } - IN_ONE_PLACE


def test_after_the_preparation_each_key_has_the_palace():
    with connection.cursor() as cursor:
        tables = spread(cursor)
        for statement in list(preparation(cursor)):
            cursor.execute(statement)
        cursor.execute(_UNIQUE)
        keys = cursor.fetchall()
        assert list(preparation(cursor)) == []
    assert tables.keys() <= {table for table, *_ in keys}
    assert [
        name for table, name, *_, names in keys if table in tables and tables[table] not in names
    ] == []


def test_after_the_preparation_nothing_in_one_place_refers_to_what_is_spread():
    with connection.cursor() as cursor:
        tables = spread(cursor)
        cursor.execute(_FOREIGN)
        before = [name for table, name, to, *_ in cursor if to in tables and table not in tables]
        for statement in list(preparation(cursor)):
            cursor.execute(statement)
        cursor.execute(_FOREIGN)
        after = [name for table, name, to, *_ in cursor if to in tables and table not in tables]
    assert before == ["palace_webhookdelivery_palace"]
    assert after == []


def test_every_table_of_a_palace_is_spread_by_it():
    said = StringIO()
    call_command("citus_script", stdout=said)
    with connection.cursor() as cursor:
        lines = list(distribution(cursor))
        assert spread(cursor).keys() == {PALACES, *tables_of_palaces()}
    assert all(f"{line};\n" in said.getvalue() for line in lines)
    for table in tables_of_palaces():
        assert any(f"create_distributed_table('{table}', 'palace_id'" in line for line in lines), (
            table
        )
    assert "SELECT create_reference_table('auth_user')" in lines

"""`manage.py citus_script`: its preparation runs on plain Postgres; then each key has a palace."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from config.management.commands.citus_script import _UNIQUE, PALACES, distribution, preparation
from tests.isolation.statements import distributed

pytestmark = pytest.mark.django_db


def test_after_the_preparation_each_key_has_the_palace():
    with connection.cursor() as cursor:
        statements = list(preparation(cursor))
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(_UNIQUE)
        keys = cursor.fetchall()
        assert list(preparation(cursor)) == []
    # A delivery that tries a webhook is of no palace, so its table stays in one place.
    tables = set(distributed()) - {PALACES, "palace_webhookdelivery"}
    found = {table for table, *_ in keys if table in tables}
    assert len(found) > 20
    assert [
        name for table, name, *_, names in keys if table in found and "palace_id" not in names
    ] == []


def test_every_table_of_a_palace_is_spread_by_it():
    said = StringIO()
    call_command("citus_script", stdout=said)
    with connection.cursor() as cursor:
        lines = list(distribution(cursor))
    assert all(f"{line};\n" in said.getvalue() for line in lines)
    for table in set(distributed()) - {PALACES, "palace_webhookdelivery"}:
        assert any(f"create_distributed_table('{table}', 'palace_id'" in line for line in lines), (
            table
        )
    assert "SELECT create_reference_table('auth_user')" in lines

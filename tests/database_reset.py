"""Emptying the database after a test that committed.

Django truncates every table and makes permissions and content types again, which takes a quarter
of a second; most tests leave rows in ten of some hundred tables.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.test import TransactionTestCase

from palace.models import Change

# Made by migrations, and the same for every test.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}

# The database notes in it what is deleted elsewhere, whatever the role: it goes last.
CHANGES = Change._meta.db_table


def install() -> None:
    TransactionTestCase._fixture_teardown = lambda _self: empty_all_tables()


def empty_all_tables() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # Without triggers, foreign keys among them: all goes, in whatever order.
        cursor.execute("SET LOCAL session_replication_role = replica")
        tables = set(connection.introspection.table_names(cursor)) - KEPT - {CHANGES}
        for table in [*_filled(cursor, tables), CHANGES]:
            cursor.execute(f'DELETE FROM "{table}"')  # noqa: S608 - named by the database itself.


def _filled(cursor, tables: set[str]) -> list[str]:
    tables = sorted(tables)
    cursor.execute(
        " UNION ALL ".join(
            f"(SELECT '{table}' FROM \"{table}\" LIMIT 1)"  # noqa: S608 - see above.
            for table in tables
        )
    )
    return [table for (table,) in cursor]

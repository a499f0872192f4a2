"""A database schema of a run's own: the user's palace is never touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection


@contextmanager
def own_schema(name: str, *, keep: bool) -> Iterator[bool]:
    """Everything inside the block reads and writes schema `name`. Yields whether it is new.

    Dropped at the end unless `keep`; a schema kept by an earlier run is used as it is.
    """
    with connection.cursor() as cursor:
        # Types are shared by all schemas; whoever makes the extension first makes it for all.
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        cursor.execute("SELECT to_regnamespace(%s) IS NULL", [name])
        [is_new] = cursor.fetchone()
        cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
    options = connection.settings_dict["OPTIONS"]
    before = options["options"]
    options["options"] = f"{before} -c search_path={name},public"
    connection.close()
    try:
        call_command("migrate", verbosity=0)
        yield is_new
    finally:
        connection.close()
        options["options"] = before
        if not keep:
            with connection.cursor() as cursor:
                cursor.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')

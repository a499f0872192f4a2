"""Writing many rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection, models

from palace.models import Palace


def copy_in(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Write rows as they are: unlike `bulk_create` it keeps the times of making that are given."""
    quoted = connection.ops.quote_name
    named = ", ".join(map(quoted, columns))
    statement = f"COPY {quoted(model._meta.db_table)} ({named}) FROM STDIN"
    # What ends a copy comes to us past the cursor, which would have told it in Django's terms.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def present(model: type[models.Model], palace: Palace, uuids: Iterable[object]) -> set[object]:
    """Those of the ids that a row of the palace has."""
    rows = model._default_manager.filter(palace=palace, uuid__in=list(uuids))
    return set(rows.values_list("uuid", flat=True))

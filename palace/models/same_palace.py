"""Steps of migrations: keys that keep each row, and what it refers to, in one palace.

For tables of other apps that belong to a palace, too. Rows go with their palace in the database
itself: quickly, and whatever others were just writing.
"""

from __future__ import annotations

from django.db.migrations import RunSQL


def goes_with_its_palace(table: str) -> RunSQL:
    name = f"{table}_palace"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (palace_id) "
        "REFERENCES palace_palace (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def belongs_to(table: str, column: str, target: str, on_delete: str) -> RunSQL:
    """
    Args:
        on_delete: `CASCADE`, or `SET NULL (column)`.
    """
    name = f"{table}_{column}_same_palace"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (palace_id, {column}) "
        f"REFERENCES {target} (palace_id, id) ON DELETE {on_delete} DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )

"""Steps of migrations: tables made together, and keys that keep each row, and what it refers to, in
one palace.

For tables of other apps that belong to a palace, too. Rows go with their palace in the database
itself: quickly, and whatever others were just writing.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import CreateModel, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """`CreateModel` for several models at once, and their constraints before what follows.

    Django builds the classes of all models that relate to a new one again after each: most of the
    time that a new database took. It adds constraints last, but keys to a palace refer to some.
    """

    def __init__(self, models: Sequence[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # Without classes there are none to build again; the next step that needs them builds all.
        state.__dict__.pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)
        while schema_editor.deferred_sql:
            schema_editor.execute(schema_editor.deferred_sql.pop(0))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.models)} models"


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

"""Keys that say a row and what it belongs to are of one palace, and how vectors are stored."""

from django.db import migrations

# Table, column, the table it refers to, and what becomes of the row when that one goes.
BELONGS_TO = [
    ("palace_wingalias", "wing_id", "palace_wing", "CASCADE"),
    ("palace_room", "wing_id", "palace_wing", "CASCADE"),
    ("palace_closet", "room_id", "palace_room", "CASCADE"),
    ("palace_drawer", "room_id", "palace_room", "CASCADE"),
    ("palace_drawer", "closet_id", "palace_closet", "SET NULL (closet_id)"),
    ("palace_passage", "drawer_id", "palace_drawer", "CASCADE"),
    ("palace_mention", "drawer_id", "palace_drawer", "CASCADE"),
    ("palace_mention", "entity_id", "palace_entity", "CASCADE"),
]

# Every table of a palace. The database deletes their rows with the palace: quickly, and whatever
# others were just writing into it.
OF_A_PALACE = [
    "activity",
    "closet",
    "drawer",
    "entity",
    "importjob",
    "mention",
    "passage",
    "posting",
    "recollectiontrace",
    "room",
    "wing",
    "wingalias",
]


def goes_with_its_palace(table):
    name = f"palace_{table}_palace"
    return migrations.RunSQL(
        f"ALTER TABLE palace_{table} ADD CONSTRAINT {name} FOREIGN KEY (palace_id) "
        "REFERENCES palace_palace (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE palace_{table} DROP CONSTRAINT {name}",
    )


def belongs_to(table, column, target, on_delete):
    name = f"{table}_{column}_same_palace"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (palace_id, {column}) "
        f"REFERENCES {target} (palace_id, id) ON DELETE {on_delete} DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def plain_storage(table, column):
    """Vectors and postings are read whole and hardly compress: keep them beside their row."""
    return migrations.RunSQL(
        f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE PLAIN", migrations.RunSQL.noop
    )


class Migration(migrations.Migration):
    dependencies = [("palace", "0001_initial")]

    operations = [
        *(goes_with_its_palace(table) for table in OF_A_PALACE),
        *(belongs_to(*row) for row in BELONGS_TO),
        plain_storage("palace_passage", "embedding"),
        plain_storage("palace_posting", "drawers"),
        plain_storage("palace_posting", "counts"),
        plain_storage("palace_posting", "lengths"),
    ]

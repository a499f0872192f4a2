"""A drawer takes less space: two indexes that others make superfluous, and earlier vacuuming."""

from django.db import migrations, models
from django.db.models.deletion import CASCADE, SET_NULL

# Mining and the reading of facts each write a drawer again. By itself the server takes back the
# places of former versions when they are a fifth of the table.
SOON = """
ALTER TABLE palace_drawer SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200
)
"""
AS_BEFORE = """
ALTER TABLE palace_drawer RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)
"""


def without_index(to, on_delete, **more):
    return models.ForeignKey(
        to, on_delete, related_name="drawers", db_constraint=False, db_index=False, **more
    )


class Migration(migrations.Migration):
    dependencies = [("palace", "0041_drawers_by_key")]

    operations = [
        migrations.AlterField("drawer", "room", without_index("palace.room", CASCADE)),
        migrations.AlterField(
            "drawer", "closet", without_index("palace.closet", SET_NULL, null=True)
        ),
        migrations.RunSQL(SOON, AS_BEFORE),
    ]

"""The change log of each palace, kept by the database whoever writes, and however."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from palace.models.migration_steps import goes_with_its_palace

# Functions look where they were made: a restore, for one, has no search path.
NOTE = """
CREATE SEQUENCE palace_revision_seq;
CREATE FUNCTION palace_note_change(changed_palace bigint, changed_drawers bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    -- Until this commits nobody else is given a revision of this palace: they are committed in
    -- the order of their numbers.
    PERFORM FROM palace_palace WHERE id = changed_palace FOR NO KEY UPDATE;
    IF NOT FOUND THEN  -- It is being deleted, with all of its changes.
        RETURN;
    END IF;
    INSERT INTO palace_change (palace_id, revision, drawers) VALUES (
        changed_palace,
        nextval('palace_revision_seq'),
        CASE WHEN cardinality(changed_drawers) <= 2000 THEN changed_drawers END
    );
    DELETE FROM palace_change WHERE palace_id = changed_palace AND revision <= (
        SELECT revision FROM palace_change WHERE palace_id = changed_palace
        ORDER BY revision DESC OFFSET 64 LIMIT 1
    );
END
$$
"""

# What goes by itself with other rows is one change, too, however many those were.
NOTE_ALL = """
CREATE FUNCTION {table}_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT palace_id, array_agg(DISTINCT {drawer}) AS drawers FROM changed
        GROUP BY palace_id ORDER BY palace_id
    LOOP
        PERFORM palace_note_change(one.palace_id, one.drawers);
    END LOOP;
    RETURN NULL;
END
$$
"""

# Also where an account has switched others off, as loading in bulk does.
WATCH = """
CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {table}_changed();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}
"""
EVENTS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def watched(table, drawer):
    yield migrations.RunSQL(
        NOTE_ALL.format(table=table, drawer=drawer), f"DROP FUNCTION {table}_changed"
    )
    for event, rows in EVENTS.items():
        name = f"{table}_{event.lower()}_changed"
        yield migrations.RunSQL(
            WATCH.format(name=name, event=event, table=table, rows=rows),
            f"DROP TRIGGER {name} ON {table}",
        )


class Migration(migrations.Migration):
    dependencies = [("palace", "0008_drawer_traits")]

    operations = [
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "palace_id",
                        "revision",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("revision", models.BigIntegerField()),
                (
                    "drawers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Their keys; null where they are too many.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "palace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="palace.palace",
                    ),
                ),
            ],
        ),
        goes_with_its_palace("palace_change"),
        migrations.RunSQL(
            NOTE, "DROP FUNCTION palace_note_change; DROP SEQUENCE palace_revision_seq"
        ),
        *watched("palace_drawer", "id"),
        *watched("palace_passage", "drawer_id"),
    ]

"""Each room counts its drawers and their bytes, by the database, whoever writes and however."""

from django.db import migrations, models

# Functions look where they were made: a restore, for one, has no search path.
COUNT = """
CREATE FUNCTION palace_room_counts_{event}() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE palace_room SET
        stored_count = stored_count + changed.stored,
        stored_bytes = palace_room.stored_bytes + changed.stored_bytes,
        kept_count = kept_count + changed.kept,
        kept_bytes = palace_room.kept_bytes + changed.kept_bytes
    FROM (
        SELECT palace_id, room_id, sum(sign) AS stored, sum(sign * bytes) AS stored_bytes,
            coalesce(sum(sign) FILTER (WHERE trashed_at IS NULL), 0) AS kept,
            coalesce(sum(sign * bytes) FILTER (WHERE trashed_at IS NULL), 0) AS kept_bytes
        FROM ({rows}) rows GROUP BY palace_id, room_id
    ) changed
    WHERE palace_room.palace_id = changed.palace_id AND palace_room.id = changed.room_id
        AND (changed.stored, changed.stored_bytes, changed.kept, changed.kept_bytes)
            <> (0, 0, 0, 0);
    RETURN NULL;
END
$$
"""
SIGNED = """
SELECT palace_id, room_id, trashed_at, {sign} AS sign, octet_length(text)::bigint AS bytes
FROM {table}
"""
# Moved to another room, or to and from the trash; mining and reading change nothing here.
MOVED = """
SELECT {side}.palace_id, {side}.room_id, {side}.trashed_at, {sign} AS sign,
    octet_length({side}.text)::bigint AS bytes
FROM removed JOIN added USING (id)
WHERE (removed.palace_id, removed.room_id) <> (added.palace_id, added.room_id)
    OR (removed.trashed_at IS NULL) <> (added.trashed_at IS NULL)
    OR octet_length(removed.text) <> octet_length(added.text)
"""
ROWS = {
    "insert": SIGNED.format(sign=1, table="added"),
    "delete": SIGNED.format(sign=-1, table="removed"),
    "update": MOVED.format(side="added", sign=1)
    + " UNION ALL "
    + MOVED.format(side="removed", sign=-1),
}
TABLES = {
    "insert": "NEW TABLE AS added",
    "delete": "OLD TABLE AS removed",
    "update": "OLD TABLE AS removed NEW TABLE AS added",
}
# Where rows are loaded with triggers off, as by a restore, rooms are loaded with their counts.
WATCH = """
CREATE TRIGGER palace_drawer_{event}_counts AFTER {event} ON palace_drawer
    REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION palace_room_counts_{event}()
"""
UNWATCH = """
DROP TRIGGER palace_drawer_{event}_counts ON palace_drawer;
DROP FUNCTION palace_room_counts_{event}
"""
COUNT_ALL = """
UPDATE palace_room SET stored_count = found.stored, stored_bytes = found.stored_bytes,
    kept_count = found.kept, kept_bytes = found.kept_bytes
FROM (
    SELECT palace_id, room_id, count(*) AS stored, sum(octet_length(text)) AS stored_bytes,
        count(*) FILTER (WHERE trashed_at IS NULL) AS kept,
        coalesce(sum(octet_length(text)) FILTER (WHERE trashed_at IS NULL), 0) AS kept_bytes
    FROM palace_drawer GROUP BY palace_id, room_id
) found
WHERE palace_room.palace_id = found.palace_id AND palace_room.id = found.room_id
"""
FIELDS = {
    "stored_count": models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawers, those in the trash too."
    ),
    "stored_bytes": models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Of their texts, as UTF-8."
    ),
    "kept_count": models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawers outside the trash."
    ),
    "kept_bytes": models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Of their texts, as UTF-8."
    ),
}


def watched(event):
    function = COUNT.format(event=event, rows=ROWS[event])
    watch = WATCH.format(event=event, tables=TABLES[event])
    yield migrations.RunSQL(f"{function};{watch}", UNWATCH.format(event=event))


class Migration(migrations.Migration):
    dependencies = [("palace", "0031_keeping")]

    operations = [
        *(migrations.AddField("room", name, field) for name, field in FIELDS.items()),
        *(operation for event in ROWS for operation in watched(event)),
        migrations.RunSQL(COUNT_ALL, migrations.RunSQL.noop),
    ]

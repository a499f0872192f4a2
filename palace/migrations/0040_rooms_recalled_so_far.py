"""Rooms recalled so far, from the traces there are.

By itself, as it may take minutes, in which the change of the table would lock out all who read it.
"""

from django.db import migrations

# A drawer may have been purged since, and a trace may have lost hits.
RECALLED_SO_FAR = """
UPDATE palace_room SET recalled_at = recalled.last_at
FROM (
    SELECT d.palace_id, d.room_id, max(t.created_at) AS last_at
    FROM palace_recollectiontrace t
    CROSS JOIN jsonb_array_elements(t.hits) hit
    JOIN palace_drawer d ON d.palace_id = t.palace_id AND d.uuid = (hit ->> 'drawer')::uuid
    GROUP BY d.palace_id, d.room_id
) recalled
WHERE palace_room.palace_id = recalled.palace_id AND palace_room.id = recalled.room_id
"""


class Migration(migrations.Migration):
    dependencies = [("palace", "0039_recalled_rooms")]

    operations = [migrations.RunSQL(RECALLED_SO_FAR, migrations.RunSQL.noop)]

"""Messages that the fact API received with an agent are found by that agent alone.

Earlier ones get it from their statements and facts or, while they wait for extraction, from their
options.
"""

from django.db import migrations, models
from django.db.models import Q

BACKFILL = """
UPDATE palace_drawer d SET agent = named.agent
FROM (
    SELECT palace_id, drawer_id, max(agent) AS agent FROM (
        SELECT palace_id, drawer_id, agent FROM palace_statement WHERE agent <> ''
        UNION ALL
        SELECT palace_id, drawer_id, agent FROM palace_telling WHERE agent <> ''
        UNION ALL
        SELECT e.palace_id, e.drawer_id, f.agent FROM palace_evidence e
        JOIN palace_fact f ON f.palace_id = e.palace_id AND f.id = e.fact_id
        WHERE f.agent <> ''
    ) known GROUP BY palace_id, drawer_id
) named
WHERE d.palace_id = named.palace_id AND d.id = named.drawer_id AND d.source = 'sdk'
"""


class Migration(migrations.Migration):
    dependencies = [("palace", "0026_row_security")]

    operations = [
        migrations.AddField(
            "drawer",
            "agent",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Only this agent, and calls without one, find it; empty: everyone.",
                max_length=200,
            ),
        ),
        migrations.RunSQL(BACKFILL, migrations.RunSQL.noop),
        migrations.AddIndex(
            "drawer",
            models.Index(
                condition=~Q(agent=""), fields=["palace", "agent"], name="drawer_by_agent"
            ),
        ),
    ]

"""Entities that nothing names: `POST /v1/reset/` of earlier versions left them."""

from django.db import migrations

DELETE = """
    DELETE FROM palace_entity e
    WHERE NOT EXISTS (SELECT FROM palace_mention m
        WHERE m.palace_id = e.palace_id AND m.entity_id = e.id)
    AND NOT EXISTS (SELECT FROM palace_fact f
        WHERE f.palace_id = e.palace_id AND f.subject_id = e.id)
    AND NOT EXISTS (SELECT FROM palace_fact f
        WHERE f.palace_id = e.palace_id AND f.object_entity_id = e.id)
"""


class Migration(migrations.Migration):
    dependencies = [("palace", "0035_analyzer_version")]

    operations = [migrations.RunSQL(DELETE, migrations.RunSQL.noop)]

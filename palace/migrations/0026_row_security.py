"""The database keeps palaces apart: roles, and a policy for each table that is somebody's.

After each migration those of new tables are added; see `isolation.apps`.
"""

from django.conf import settings
from django.db import migrations

from isolation.policies import protect, unprotect


class Migration(migrations.Migration):
    dependencies = [
        ("palace", "0025_slugs_with_signs"),
        ("settings_app", "0005_api_keys"),
        ("llm", "0002_dreaming"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(
            lambda apps, schema_editor: protect(schema_editor.connection),
            lambda apps, schema_editor: unprotect(schema_editor.connection),
        )
    ]

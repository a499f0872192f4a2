"""For each wing: how long its messages are kept, and what is never kept."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0030_reviewed_rooms")]

    operations = [
        migrations.AddField(
            "wing",
            "kept_months",
            models.PositiveIntegerField(
                null=True, help_text="Older messages go to the trash; null: they stay."
            ),
        ),
        migrations.AddField(
            "wing",
            "never",
            django.contrib.postgres.fields.ArrayField(
                models.CharField(max_length=200),
                default=list,
                db_default=[],
                help_text="Names of people and topics; messages about them go to the trash.",
            ),
        ),
    ]

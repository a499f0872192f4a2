"""A conversation that nobody recalls is kept on request, and not asked about again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0029_import_speed")]

    operations = [
        migrations.AddField(
            "room",
            "reviewed_at",
            models.DateTimeField(
                null=True, help_text="When its owner said to keep it although it is never recalled."
            ),
        ),
    ]

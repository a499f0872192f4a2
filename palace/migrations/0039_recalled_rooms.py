"""When a recall last brought something of a room."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0038_former_secrets")]

    operations = [
        migrations.AddField(
            "room",
            "recalled_at",
            models.DateTimeField(
                editable=False,
                help_text="When a recall last brought something of it, to within a day.",
                null=True,
            ),
        ),
    ]

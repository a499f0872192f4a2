"""The secret that a webhook had before, which signs for a day more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0037_labels_of_activities_and_fates")]

    operations = [
        migrations.AddField(
            "webhook",
            "former_sealed_secret",
            models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="The one before; also signs until `former_until`.",
            ),
        ),
        migrations.AddField("webhook", "former_until", models.DateTimeField(null=True)),
    ]

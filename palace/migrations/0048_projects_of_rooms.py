"""A dream suggests to file a conversation with its project, unless a person has placed it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0047_areas_of_rooms")]

    operations = [
        migrations.AddField(
            "room",
            "project",
            models.BigIntegerField(
                null=True,
                editable=False,
                help_text="Key of the project's wing that a dream suggests.",
            ),
        ),
        migrations.AddField(
            "room",
            "is_settled",
            models.BooleanField(
                default=False,
                db_default=False,
                help_text="A person placed it: no project is suggested.",
            ),
        ),
    ]

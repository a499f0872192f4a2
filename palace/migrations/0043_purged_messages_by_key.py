"""A repeated request asks which of its messages were deleted for good."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0042_space_of_drawers")]

    operations = [
        migrations.AlterField(
            "acceptedmessage",
            "purged_key",
            models.BinaryField(
                null=True,
                help_text="Of a purged message: a digest of its ids, by which the chat and a "
                "repeated request know their own.",
            ),
        ),
        migrations.AddIndex(
            "acceptedmessage",
            models.Index(
                condition=models.Q(("purged_key__isnull", False)),
                fields=["palace", "purged_key"],
                name="accepted_message_purged",
            ),
        ),
    ]

"""Conversations off the record, memory on or off a conversation, and attached files."""

from django.db import migrations, models

from language.storable import LABEL_LENGTH


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_asked_before")]

    operations = [
        migrations.AddField("conversation", "recalls", models.BooleanField(default=True, help_text="Off: replies without memories.")),
        migrations.AddField("conversation", "off_record", models.BooleanField(default=False, help_text="On: nothing that is said from now on enters the palace.")),
        migrations.AddField("message", "off_record", models.BooleanField(default=False, help_text="On: it does not enter the palace unless somebody asks for it.")),
        migrations.AddField("message", "file_name", models.CharField(blank=True, max_length=LABEL_LENGTH, default="", help_text="Of a text file that the user attached."), preserve_default=False),
    ]

"""Columns that version 0.6.0 does not know get a default: its programs write on until they are replaced."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0043_purged_messages_by_key'),
    ]

    operations = [
        migrations.AlterField(
            model_name='importjob',
            name='measured_done',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Messages that were done when the measuring began.'),
        ),
    ]

"""Pets are a kind of entity. What an earlier version stored as a pet is valid from now on."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0044_written_by_older_programs'),
    ]

    operations = [
        migrations.AlterField(
            model_name='entity',
            name='kind',
            field=models.CharField(choices=[('person', 'Person'), ('pet', 'Pet'), ('place', 'Place'), ('organisation', 'Organisation'), ('project', 'Project'), ('event', 'Event'), ('item', 'Item')], max_length=12),
        ),
    ]

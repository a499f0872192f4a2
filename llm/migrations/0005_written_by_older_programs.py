"""Columns that version 0.6.0 does not know get a default: its programs write on until they are replaced."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('llm', '0004_rewriting'),
    ]

    operations = [
        migrations.AlterField(
            model_name='usage',
            name='characters',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Of the texts that were sent.'),
        ),
        migrations.AlterField(
            model_name='usage',
            name='host',
            field=models.CharField(blank=True, db_default='', default='', help_text='Who was sent something; empty if nobody.', max_length=255),
        ),
        migrations.AlterField(
            model_name='usage',
            name='references',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), blank=True, db_default=[], default=list, help_text='What it was made of, such as drawer:12; never its text.', size=None),
        ),
        migrations.AlterField(
            model_name='usage',
            name='requests',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, help_text='How often it was sent, retries included; 0 if it never was.'),
        ),
    ]

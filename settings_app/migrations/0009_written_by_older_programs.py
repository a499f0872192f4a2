"""Columns that version 0.6.0 does not know get a default: its programs write on until they are replaced."""

import django.contrib.postgres.fields
import settings_app.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('settings_app', '0008_second_steps'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apikey',
            name='trusts_open_webui',
            field=models.BooleanField(db_default=False, default=False, help_text='Its headers X-OpenWebUI-… name the palace and the conversation.'),
        ),
        migrations.AlterField(
            model_name='memorysettings',
            name='awaits_consent',
            field=models.BooleanField(db_default=False, default=False, help_text='The provider is not sent anything until the owner agrees.'),
        ),
        migrations.AlterField(
            model_name='memorysettings',
            name='uses',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('replies', 'Replies'), ('filing', 'Filing and summaries'), ('facts', 'Facts'), ('rerank', 'Ordering what was found'), ('dreams', 'Dreams')], max_length=10), blank=True, db_default=['replies', 'filing', 'facts', 'rerank', 'dreams'], default=settings_app.models.every_use, help_text='What the model may be asked for, whoever chose it.', size=None),
        ),
    ]

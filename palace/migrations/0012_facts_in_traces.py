from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0011_entity_activities'),
    ]

    operations = [
        migrations.AddField(
            model_name='recollectiontrace',
            name='facts',
            field=models.JSONField(default=list, help_text='What stood before them as known: memory, drawer it cites, pointer, score.'),
        ),
    ]

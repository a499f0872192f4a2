from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0015_tellings'),
    ]

    operations = [
        migrations.AddField(
            model_name='recollectiontrace',
            name='carried',
            field=models.JSONField(default=list, help_text='What stood there from earlier turns: item, drawer, pointer, turn.'),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('settings_app', '0006_consent'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='trusts_open_webui',
            field=models.BooleanField(default=False, help_text='Its headers X-OpenWebUI-… name the palace and the conversation.'),
        ),
    ]

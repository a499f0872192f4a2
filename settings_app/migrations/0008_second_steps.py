"""The second step of signing in, and when a session was last used."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("settings_app", "0007_keys_for_open_webui"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "session",
            "seen_at",
            models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                default=django.utils.timezone.now,
                help_text="When it was last used, to some minutes.",
            ),
        ),
        migrations.CreateModel(
            name="SecondStep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "sealed_secret",
                    models.TextField(help_text="Encrypted; see settings_app.secrets."),
                ),
                ("begun_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("confirmed_at", models.DateTimeField(null=True)),
                (
                    "last_step",
                    models.BigIntegerField(
                        default=0,
                        help_text="Of the last code that was used; none up to it works again.",
                    ),
                ),
                (
                    "recovery_digests",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="second_step",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]

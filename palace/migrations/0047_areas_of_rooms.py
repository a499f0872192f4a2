"""An area of life gets a wing from its third conversation on: until then its rooms remember it."""

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("palace", "0046_unsure_facts")]

    operations = [
        migrations.AddField(
            "palace",
            "rejected_areas",
            django.contrib.postgres.fields.ArrayField(
                models.CharField(max_length=200),
                default=list,
                db_default=[],
                editable=False,
                help_text="Areas of life that get no wing by rules, and for which none is suggested.",
            ),
        ),
        migrations.AddField(
            "room",
            "area",
            models.CharField(
                max_length=200, default="", db_default="", help_text="Awaits a wing of this area."
            ),
        ),
        migrations.AddIndex(
            "room",
            models.Index(fields=["palace", "wing"], name="room_with_area", condition=~Q(area="")),
        ),
    ]

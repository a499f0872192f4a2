"""Facts that are not sure enough to be recalled wait under Review; an index finds them."""

from django.db import migrations, models
from django.db.models import Q

KINDS = [
    ("merge", "Merge duplicates"),
    ("refine", "File it better"),
    ("drop", "Remove noise"),
    ("outdated", "Remove outdated"),
    ("contradiction", "Resolve conflict"),
    ("unsure", "Unsure facts"),
    ("anti_pattern", "What not to do"),
    ("preference", "What you seem to like"),
]


class Migration(migrations.Migration):
    dependencies = [("palace", "0045_pets")]

    operations = [
        migrations.AlterField("proposal", "kind", models.CharField(choices=KINDS, max_length=14)),
        migrations.AddIndex(
            "fact",
            models.Index(
                fields=["palace"],
                name="fact_unsure",
                condition=Q(retired_at=None, confidence__lt=0.7, opened_by__isnull=False),
            ),
        ),
    ]

"""Indexes that answer for kept drawers alone: where and when each was said, which are unread."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0040_rooms_recalled_so_far")]

    operations = [
        migrations.AddIndex(
            "drawer",
            models.Index(
                condition=models.Q(("trashed_at", None)),
                fields=["palace", "id"],
                include=["room", "said_at"],
                name="drawer_kept_by_key",
            ),
        ),
        migrations.RemoveIndex("drawer", "drawer_unread"),
        migrations.AddIndex(
            "drawer",
            models.Index(
                condition=models.Q(("facts_read_at", None), ("trashed_at", None)),
                fields=["palace", "room"],
                name="drawer_unread",
            ),
        ),
    ]

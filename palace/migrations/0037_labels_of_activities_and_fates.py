"""Labels of activities and of inactive facts, in the words of the pages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("palace", "0036_entities_of_resets")]

    operations = [
        migrations.AlterField(
            "activity",
            "kind",
            models.CharField(
                choices=[
                    ("memory_mined", "Remembered"),
                    ("chats_imported", "Imported"),
                    ("drawers_trashed", "Moved to the trash"),
                    ("drawers_restored", "Restored"),
                    ("drawers_purged", "Deleted for good"),
                    ("drawers_moved", "Moved"),
                    ("wing_changed", "Wings renamed"),
                    ("wings_merged", "Wings merged"),
                    ("entities_merged", "People and things merged"),
                    ("entity_split", "People and things split"),
                    ("entity_undone", "Merges and splits undone"),
                    ("dreamt", "Dreamt"),
                ],
                max_length=30,
            ),
        ),
        migrations.AlterField(
            "fact",
            "fate",
            models.CharField(
                blank=True,
                choices=[
                    ("", "Active"),
                    ("superseded", "Replaced by a newer fact"),
                    ("ended", "Ended"),
                    ("refined", "Replaced by a more exact one"),
                    ("corrected", "Replaced by a correction"),
                    ("deleted", "Deleted"),
                    ("unfounded", "Its sources were deleted"),
                ],
                default="",
                max_length=12,
            ),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("palace", "0010_facts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="activity",
            name="kind",
            field=models.CharField(
                choices=[
                    ("memory_mined", "Remembered"),
                    ("chats_imported", "Imported"),
                    ("drawers_trashed", "Moved to the trash"),
                    ("drawers_restored", "Restored"),
                    ("drawers_purged", "Deleted for good"),
                    ("wing_changed", "Wings renamed"),
                    ("wings_merged", "Wings merged"),
                    ("entities_merged", "Entities merged"),
                    ("entity_split", "Entities split"),
                    ("entity_undone", "Entities put back"),
                ],
                max_length=30,
            ),
        ),
    ]

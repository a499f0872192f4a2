"""Which version of the analyzer a palace's postings are of: those so far, of the first."""

from django.db import migrations, models

from palace.models import current_analyzer


class Migration(migrations.Migration):
    dependencies = [("palace", "0034_accepted_messages")]

    operations = [
        migrations.AddField(
            "palace",
            "analyzer",
            models.PositiveSmallIntegerField(
                default=current_analyzer,
                db_default=1,
                editable=False,
                help_text="The version of the analyzer that the postings are of.",
            ),
        ),
    ]

"""What was accepted, apart from the drawers; of what is here already, as it is here.

What was purged until now is known by number only: its rows say so in their palace.
"""

import django.db.models.deletion
from django.db import migrations, models

from palace.models.migration_steps import goes_with_its_palace

ACCEPTED_SO_FAR = """
INSERT INTO palace_acceptedmessage (palace_id, uuid, digest)
SELECT palace_id, uuid, substring(sha256(convert_to(text, 'UTF8')) FOR 16) FROM palace_drawer
"""
PURGED_SO_FAR = """
UPDATE palace_palace SET purged_unnamed = found.drawers FROM (
    SELECT palace_id, sum((detail ->> 'drawers')::int) AS drawers FROM palace_activity
    WHERE kind = 'drawers_purged' AND detail ? 'drawers' GROUP BY palace_id
) found WHERE palace_palace.id = found.palace_id
"""


class Migration(migrations.Migration):
    dependencies = [("palace", "0033_slugs_with_more_signs")]

    operations = [
        migrations.AddField(
            "palace",
            "purged_unnamed",
            models.PositiveIntegerField(
                default=0,
                db_default=0,
                editable=False,
                help_text="Drawers that were purged before purges kept their ids.",
            ),
        ),
        migrations.CreateModel(
            "AcceptedMessage",
            [
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "palace_id",
                        "uuid",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("uuid", models.UUIDField(help_text="The drawer's.")),
                (
                    "digest",
                    models.BinaryField(
                        null=True,
                        help_text="The first 16 bytes of the text's SHA-256; null once it is purged.",
                    ),
                ),
                ("purged_at", models.DateTimeField(null=True)),
                (
                    "purged_key",
                    models.BinaryField(
                        null=True,
                        help_text="Of a purged message: a digest of its ids, by which the chat "
                        "knows its own.",
                    ),
                ),
                (
                    "palace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="palace.palace",
                    ),
                ),
            ],
        ),
        # A constraint cannot be added while one that is deferred has rows to check.
        migrations.RunSQL(ACCEPTED_SO_FAR, migrations.RunSQL.noop),
        goes_with_its_palace("palace_acceptedmessage"),
        migrations.RunSQL(PURGED_SO_FAR, migrations.RunSQL.noop),
    ]

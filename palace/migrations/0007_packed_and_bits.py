"""Postings as bytes, and the sign bits of vectors: both are read faster, and take less room."""

import django.db.models.expressions
import django.db.models.functions.text
from django.db import migrations, models

import palace.models.packed

# Written out, so that it is read by this migration alone.
PACKED = """
CREATE FUNCTION pg_temp.packed8(bigint[]) RETURNS bytea LANGUAGE sql AS $$
    SELECT coalesce(string_agg(int8send(n), ''::bytea ORDER BY place), '')
    FROM unnest($1) WITH ORDINALITY AS numbers (n, place)
$$;
CREATE FUNCTION pg_temp.packed2(smallint[]) RETURNS bytea LANGUAGE sql AS $$
    SELECT coalesce(string_agg(int2send(n), ''::bytea ORDER BY place), '')
    FROM unnest($1) WITH ORDINALITY AS numbers (n, place)
$$;
UPDATE palace_posting SET total = (SELECT sum(length) FROM unnest(lengths) length) WHERE term = '';
ALTER TABLE palace_posting
    ALTER COLUMN drawers TYPE bytea USING pg_temp.packed8(drawers),
    ALTER COLUMN counts TYPE bytea USING pg_temp.packed2(counts),
    ALTER COLUMN lengths TYPE bytea USING pg_temp.packed2(lengths),
    ALTER COLUMN drawers SET STORAGE PLAIN,
    ALTER COLUMN counts SET STORAGE PLAIN,
    ALTER COLUMN lengths SET STORAGE PLAIN;
DROP FUNCTION pg_temp.packed8, pg_temp.packed2;
"""

# Postings can be made again from the drawers, by `manage.py reindex`.
UNPACKED = """
TRUNCATE palace_posting;
ALTER TABLE palace_posting
    ALTER COLUMN drawers TYPE bigint[] USING NULL,
    ALTER COLUMN counts TYPE smallint[] USING NULL,
    ALTER COLUMN lengths TYPE smallint[] USING NULL,
    ALTER COLUMN drawers SET STORAGE PLAIN,
    ALTER COLUMN counts SET STORAGE PLAIN,
    ALTER COLUMN lengths SET STORAGE PLAIN;
"""

KEY = "PRIMARY KEY (palace_id, space_id, drawer_id, ordinal)"
REPLACE_KEY = (
    "ALTER TABLE palace_passage DROP CONSTRAINT palace_passage_pkey,"
    " ADD CONSTRAINT palace_passage_pkey"
)

# The index alone answers only for pages that vacuum has marked since they were written to. By
# itself the server does so when a fifth of the table is new.
SOON = """
ALTER TABLE palace_passage SET (
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000
)
"""
AS_BEFORE = """
ALTER TABLE palace_passage RESET (
    autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold
)
"""


def packed(kind, **more):
    return palace.models.packed.PackedField(kind=kind, **more)


class Migration(migrations.Migration):
    dependencies = [("palace", "0006_recall_cases")]

    operations = [
        migrations.RemoveIndex("posting", "posting_term"),
        migrations.AddField(
            "posting",
            "total",
            models.IntegerField(
                default=0, help_text="Sum of the lengths, for the empty term; else 0."
            ),
        ),
        migrations.AddField(
            "posting",
            "merged",
            models.BooleanField(
                default=False, help_text="Written by compaction, and not touched since."
            ),
        ),
        migrations.RunSQL(
            PACKED,
            UNPACKED,
            [
                migrations.AlterField("posting", "drawers", packed("i8")),
                migrations.AlterField(
                    "posting",
                    "counts",
                    packed("i2", help_text="How often the term is in each."),
                ),
                migrations.AlterField(
                    "posting",
                    "lengths",
                    packed("i2", help_text="How many terms each one has."),
                ),
            ],
        ),
        migrations.AddField(
            "posting",
            "number",
            models.GeneratedField(
                db_persist=True,
                expression=django.db.models.expressions.CombinedExpression(
                    django.db.models.functions.text.Length(models.F("drawers")),
                    "/",
                    models.Value(8),
                ),
                help_text="Of the drawers.",
                output_field=models.IntegerField(),
            ),
        ),
        migrations.AddIndex(
            "posting",
            models.Index(
                fields=["palace", "term"],
                include=("number", "total", "merged"),
                name="posting_term_sizes",
            ),
        ),
        migrations.AddField(
            "passage",
            "bits",
            models.GeneratedField(
                db_persist=True,
                expression=models.Func(models.F("embedding"), function="binary_quantize"),
                help_text="Which of its numbers are above zero.",
                null=True,
                output_field=palace.models.packed.BitsField(),
            ),
        ),
        migrations.RunSQL(
            [
                "ALTER TABLE palace_passage ALTER COLUMN bits SET STORAGE PLAIN",
                f"{REPLACE_KEY} {KEY} INCLUDE (bits)",
                SOON,
            ],
            [f"{REPLACE_KEY} {KEY}", AS_BEFORE],
        ),
    ]

"""What kind of thing each drawer says; of drawers that are there already, read once here."""

from django.db import migrations, models

BATCH = 1000


def read_all(apps, schema_editor):
    from language.english.message_traits import read_traits

    drawer = apps.get_model("palace", "Drawer")
    last = 0
    while rows := list(
        drawer.objects.filter(pk__gt=last, mined_at__isnull=False)
        .order_by("pk")
        .values_list("pk", "text")[:BATCH]
    ):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "UPDATE palace_drawer d SET traits = n.traits"
                " FROM unnest(%s::bigint[], %s::smallint[]) AS n (id, traits) WHERE d.id = n.id",
                [[pk for pk, _ in rows], [int(read_traits(text)) for _, text in rows]],
            )
        last = rows[-1][0]


class Migration(migrations.Migration):
    dependencies = [("palace", "0007_packed_and_bits")]

    operations = [
        migrations.AddField(
            model_name="drawer",
            name="traits",
            field=models.SmallIntegerField(
                default=0, db_default=0, help_text="What kind of thing it says, one bit a trait."
            ),
        ),
        migrations.RunPython(read_all, migrations.RunPython.noop),
    ]

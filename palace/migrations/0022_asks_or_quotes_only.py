"""Which drawers only ask, and which only quote; of those that are there already, read once here."""

from django.db import migrations

BATCH = 1000


def read_all(apps, schema_editor):
    from language.english.message_traits import read_traits

    drawer = apps.get_model("palace", "Drawer")
    last = 0
    while rows := list(
        drawer.objects.filter(pk__gt=last, mined_at__isnull=False)
        .order_by("pk")
        .values_list("pk", "text", "traits")[:BATCH]
    ):
        read = [(pk, int(read_traits(text)), before) for pk, text, before in rows]
        changed = [(pk, traits) for pk, traits, before in read if traits != before]
        if changed:
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE palace_drawer d SET traits = n.traits"
                    " FROM unnest(%s::bigint[], %s::smallint[]) AS n (id, traits)"
                    " WHERE d.id = n.id",
                    [list(column) for column in zip(*changed, strict=True)],
                )
        last = rows[-1][0]


class Migration(migrations.Migration):
    dependencies = [("palace", "0021_moved_is_told")]

    operations = [migrations.RunPython(read_all, migrations.RunPython.noop)]

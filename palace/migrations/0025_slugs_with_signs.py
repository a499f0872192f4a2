"""Slugs of names such as C++ and C#, which were those of C.

One whose new slug is taken keeps the old one.
"""

from django.db import migrations

# A name without one of these has the slug it had.
SIGNS = r"[+#&.]"
MODELS = {"Entity": ("name", ("kind",)), "Wing": ("name", ()), "Closet": ("title", ("room_id",))}


def rename(apps, schema_editor):
    from language.slugs import slug_of

    for model, (field, scope) in MODELS.items():
        rows = apps.get_model("palace", model).objects.order_by("pk")
        for row in rows.filter(**{f"{field}__regex": SIGNS}).iterator(chunk_size=1000):
            slug = slug_of(getattr(row, field))
            key = {name: getattr(row, name) for name in ("palace_id", *scope)}
            if slug != row.slug and not rows.filter(slug=slug, **key).exists():
                rows.filter(pk=row.pk).update(slug=slug)


class Migration(migrations.Migration):
    dependencies = [("palace", "0024_proposal_labels")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]

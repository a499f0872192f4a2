"""Slugs of names such as Python 3.12, TCP/IP, A* and देव, which were those of others.

One whose new slug is taken keeps the old one, and so does one that has not its name's old slug: it
has a number, or was renamed. A wing is found by its new slug instead of the old one; those of its
other names stay, because only their slugs are known.
"""

import re
import unicodedata

from django.db import migrations

# A name without one of these has the slug it had.
SIGNS = r"[^a-zA-Z0-9\s_]"
MODELS = {"Entity": ("name", ("kind",)), "Wing": ("name", ()), "Closet": ("title", ("room_id",))}

_TOLD = re.compile(r"(?<=[\w+#])[+#]|(?<=\w)&(?=\w)|(?<![\w.])\.(?=[^\W\d_])")
_SPELT = {"+": "-plus", "#": "-sharp", "&": "-and-", ".": "dot-"}


def old_slug(name):
    normal = unicodedata.normalize("NFKC", name).lower()
    spelt = _TOLD.sub(lambda sign: _SPELT[sign.group()], normal)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", spelt)).strip("-_")[:200]


def rename(apps, schema_editor):
    from language.slugs import slug_of

    aliases = apps.get_model("palace", "WingAlias").objects
    for model, (field, scope) in MODELS.items():
        rows = apps.get_model("palace", model).objects.order_by("pk")
        for row in rows.filter(**{f"{field}__regex": SIGNS}).iterator(chunk_size=1000):
            name = getattr(row, field)
            old, slug = row.slug, slug_of(name)
            key = {column: getattr(row, column) for column in ("palace_id", *scope)}
            if old in (slug, "") or old != old_slug(name) or rows.filter(slug=slug, **key).exists():
                continue
            rows.filter(pk=row.pk).update(slug=slug)
            if model == "Wing" and not aliases.filter(palace_id=row.palace_id, slug=slug).exists():
                aliases.filter(palace_id=row.palace_id, wing_id=row.pk, slug=old).update(slug=slug)


class Migration(migrations.Migration):
    dependencies = [("palace", "0032_room_counts")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]

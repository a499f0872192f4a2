"""What was cut, as a table: the names of the signals once, not once for each candidate."""

from django.db import migrations, models

HELP = (
    "The best of those that were cut: the names of the signals, and of each a row of "
    "its drawer's key, score, why it was cut, place by score, and share of each signal."
)
AT_ONCE = 500


def as_table(candidates):
    signals = list(dict.fromkeys(name for each in candidates for name in each["signals"]))
    rows = [
        [
            *(each["drawer"], each["score"], each["cut"], each.get("place")),
            *(each["signals"].get(name, 0.0) for name in signals),
        ]
        for each in candidates
    ]
    return {"signals": signals, "rows": rows}


def as_list(table):
    return [
        {
            "drawer": drawer,
            "score": score,
            "cut": why,
            "signals": dict(zip(table["signals"], shares, strict=True)),
            **({} if place is None else {"place": place}),
        }
        for drawer, score, why, place, *shares in table["rows"]
    ]


def convert(kind, change):
    def run(apps, schema_editor):
        Trace = apps.get_model("palace", "RecollectionTrace")
        kept = Trace.objects.order_by("pk").only("candidates")
        last = 0
        while batch := list(kept.filter(pk__gt=last)[:AT_ONCE]):
            for trace in batch:
                if isinstance(trace.candidates, kind):
                    trace.candidates = change(trace.candidates)
            Trace.objects.bulk_update(batch, ["candidates"])
            last = batch[-1].pk

    return run


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0017_dreams'),
    ]

    operations = [
        migrations.RunPython(convert(list, as_table), convert(dict, as_list)),
        migrations.AlterField(
            model_name='recollectiontrace',
            name='candidates',
            field=models.JSONField(help_text=HELP),
        ),
    ]

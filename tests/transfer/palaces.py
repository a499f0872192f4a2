"""A palace with something of everything, and what an export says of one."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import (
    Activity,
    Closet,
    Drawer,
    Entity,
    Episode,
    Evidence,
    Fact,
    FactEvent,
    Mention,
    Palace,
    Room,
    WingAlias,
)

SPOKEN = datetime(2024, 3, 9, 18, 30, tzinfo=UTC)
TEXTS = (
    " I live in Lisbon with Ada.\r\n",
    "Lisbon is lovely \N{EM DASH} noted.\t",
    "# Not a heading\n\n```\ncode\u2028\n```\nI love rowing.  ",
    'Says "🙂" and \\u0041 \x7f',
)


def furnished(palace):
    """Mined as any other, and then lived in: renamed, trashed, corrected, purged."""
    for number, texts in enumerate((TEXTS, ("Rust is a language.", "So it is."))):
        mine(palace, _talk(f"talk-{number}", texts))
    _lived_in(palace)
    _remembered(palace)


def _talk(name, texts):
    turns = tuple(
        Turn(
            f"m{place}",
            "assistant" if place % 2 else "user",
            text,
            SPOKEN + timedelta(minutes=place, microseconds=17),
            "Ana" if place % 2 == 0 else "",
            {"client": {"n": place, "é": [1.5, None]}} if place == 0 else None,
        )
        for place, text in enumerate(texts)
    )
    return Transcript("plain", name, f"Talk / {name}: ../odd", turns, "Coach")


def _lived_in(palace):
    rooms = Room.objects.filter(palace=palace).order_by("number")
    first = rooms[0]
    WingAlias.objects.get_or_create(palace=palace, slug="lisboa", defaults={"wing": first.wing})
    WingAlias.objects.get_or_create(palace=palace, slug="lissabon", defaults={"wing": first.wing})
    drawers = Drawer.objects.filter(palace=palace, room=first).order_by("number")
    drawers[3].trash(SPOKEN + timedelta(days=1))
    # Numbers with gaps, as purging leaves them.
    Room.objects.filter(pk=rooms[1].pk).update(
        number=9, highest_drawer=12, area="Travel", is_settled=True
    )
    Palace.objects.filter(pk=palace.pk).update(
        highest_room=11, highest_wing=23, rejected_areas=["Cooking & food"]
    )
    Closet.objects.create(palace=palace, room=first, slug="empty", title="Empty since")
    Room.objects.create(
        palace=palace,
        wing=first.wing,
        number=10,
        source="chat",
        external_id="nothing-said",
        title="Nothing said",
        started_at=SPOKEN,
        ended_at=SPOKEN,
    )
    lisbon, _ = Entity.objects.get_or_create(
        palace=palace, kind="place", slug="lisbon", defaults={"name": "Lisbon"}
    )
    lisbon.aliases = ["Lisboa"]
    lisbon.save()
    Mention.objects.get_or_create(
        palace=palace, entity=lisbon, drawer=drawers[0], start=11, defaults={"end": 17}
    )


def _remembered(palace):
    drawer = Drawer.objects.filter(palace=palace).order_by("pk")[0]
    subject, _ = Entity.objects.get_or_create(
        palace=palace, kind="person", slug="grandma", defaults={"name": "Grandma"}
    )
    place = Entity.objects.get(palace=palace, kind="place", slug="lisbon")
    memory = uuid4()
    common = {
        "palace": palace,
        "memory": memory,
        "type": "fact",
        "subject": subject,
        "predicate": "lives_in_test",
        "confidence": 0.1 + 0.2,
        "single": True,
    }
    old = Fact.objects.create(
        **common,
        object="Porto",
        text="Grandma lives in Porto.",
        recorded_at=SPOKEN,
        retired_at=SPOKEN + timedelta(days=40),
        valid_to=SPOKEN + timedelta(days=30),
        fate="superseded",
    )
    new = Fact.objects.create(
        **common,
        object="Lisbon",
        object_entity=place,
        text="Grandma lives in Lisbon.",
        valid_from=SPOKEN + timedelta(days=30),
        recorded_at=SPOKEN + timedelta(days=40),
        supersedes=old,
        tags=["home"],
        metadata={"from": {"a": [1]}},
        category="home",
        agent="coach",
        run="r-1",
    )
    Evidence.objects.create(palace=palace, fact=new, drawer=drawer, start=1, end=17)
    for kind, said, at in (("ADD", old, SPOKEN), ("UPDATE", new, new.recorded_at)):
        FactEvent.objects.create(
            palace=palace,
            memory=memory,
            event=kind,
            old_text=None if kind == "ADD" else old.text,
            new_text=said.text,
            by="api",
            at=at,
        )
    Episode.objects.create(
        palace=palace,
        conversation="elsewhere",
        summary="They spoke of boats.",
        key_decisions=["row"],
        made_by="caller",
        created_at=SPOKEN,
        updated_at=SPOKEN,
    )
    Activity.objects.create(
        palace=palace, kind="drawers_trashed", summary="One drawer.", detail={"n": 1}
    )


def lines_of(path, name):
    with zipfile.ZipFile(path) as archive:
        return [json.loads(line) for line in archive.read(f"data/{name}.jsonl").splitlines()]


def data_of(path):
    """All data of an export, by file, but for activities, which are a log of this palace's own."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jsonl")]
        return {
            name: [json.loads(line) for line in archive.read(name).decode().split("\n") if line]
            for name in names
            if "activities" not in name
        }

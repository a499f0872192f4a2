"""What the database itself keeps: rows of one palace refer to that palace's, and go with it."""

from __future__ import annotations

import threading
from importlib import import_module

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from language.slugs import slug_of
from palace.mining.pipeline import mine
from palace.models import Closet, Drawer, Entity, Palace, WingAlias
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.transcript_filing import file_transcript
from tests.conversations import BATTERY, EVERYTHING
from tests.factories import (
    ClosetFactory,
    EntityFactory,
    FactFactory,
    MentionFactory,
    WingFactory,
)
from tests.polling import somebody_waits_for_us

REFERENCES = [
    ("palace_wingalias", "wing_id", "palace_wing"),
    ("palace_room", "wing_id", "palace_wing"),
    ("palace_closet", "room_id", "palace_room"),
    ("palace_drawer", "room_id", "palace_room"),
    ("palace_drawer", "closet_id", "palace_closet"),
    ("palace_passage", "drawer_id", "palace_drawer"),
    ("palace_mention", "drawer_id", "palace_drawer"),
    ("palace_mention", "entity_id", "palace_entity"),
    ("palace_episodevector", "episode_id", "palace_episode"),
]


@pytest.fixture
def bobs(bob):
    return Palace.objects.own(bob)


@pytest.mark.some(4)
@pytest.mark.parametrize(("table", "column", "target"), REFERENCES)
def test_a_row_cannot_refer_to_another_palaces(palace, bobs, table, column, target):
    for one in (palace, bobs):
        mine(one, BATTERY)
    with pytest.raises(IntegrityError, match="same_palace"):
        point_elsewhere(table, column, target, palace, bobs)


def point_elsewhere(table, column, target, ours, theirs):
    """Make one row of ours refer to one of theirs; commits where the database lets it."""
    with transaction.atomic(), connection.cursor() as cursor:
        of_palace = "WHERE palace_id = %s"
        cursor.execute(f"SELECT min(id) FROM {target} {of_palace}", [theirs.pk])  # noqa: S608
        cursor.execute(
            f"UPDATE {table} SET {column} = %s WHERE ctid IN"  # noqa: S608
            f" (SELECT ctid FROM {table} {of_palace} LIMIT 1)",
            [*cursor.fetchone(), ours.pk],
        )
        assert cursor.rowcount == 1
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def rows_of(palace):
    """How many rows each table holds of the palace."""
    tables = [model._meta.db_table for model in apps.get_app_config("palace").get_models()]
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            names = {c.name for c in connection.introspection.get_table_description(cursor, table)}
            if "palace_id" in names:
                count = f"SELECT count(*) FROM {table} WHERE palace_id = %s"  # noqa: S608
                cursor.execute(count, [palace.pk])
                [found[table]] = cursor.fetchone()
    return found


def test_deleting_a_person_deletes_all_of_their_palace_and_nothing_else(palace, bobs):
    for one in (palace, bobs):
        for talk in EVERYTHING:
            mine(one, talk)
        recall(one, RecallRequest("Which wire overheated?"))
    before = rows_of(bobs)
    assert sum(count > 0 for count in rows_of(palace).values()) == 20
    palace.owner.delete()
    assert set(rows_of(palace).values()) == {0}
    assert rows_of(bobs) == before


@pytest.mark.django_db(transaction=True)
def test_a_palace_goes_with_what_is_being_written_into_it(palace):
    room = file_transcript(palace, BATTERY).room
    holding, waited_for = threading.Event(), []

    def write():
        with transaction.atomic():
            palace.lock()
            holding.set()
            waited_for.append(somebody_waits_for_us())
            Closet.objects.create(palace=palace, room=room, slug="late", title="Late")
        connection.close()

    beside = threading.Thread(target=write)
    beside.start()
    holding.wait(10)
    palace.owner.delete()
    beside.join()
    assert waited_for == [True]
    assert not Closet.objects.exists()
    assert not Drawer.objects.exists()


def test_slugs_from_before_are_spelt_as_they_are_now(palace):
    """What has a namesake under the new slug keeps its own."""
    old = EntityFactory(palace=palace, name="C++", slug="c", kind="item")
    kept = EntityFactory(palace=palace, name="C#", slug="c-old", kind="item")
    EntityFactory(palace=palace, name="c#", slug=slug_of("C#"), kind="item")
    wing = WingFactory(palace=palace, name="AT&T", slug="att")
    import_module("palace.migrations.0025_slugs_with_signs").rename(apps, None)
    for row in (old, kept, wing):
        row.refresh_from_db()
    assert (old.slug, kept.slug, wing.slug) == (slug_of("C++"), "c-old", slug_of("AT&T"))


def test_slugs_from_before_tell_more_signs_apart(palace):
    """What has a namesake under the new slug, a number or another name's slug keeps its own."""
    old = EntityFactory(palace=palace, name="Python 3.12", slug="python-312", kind="item")
    kept = EntityFactory(palace=palace, name="Qwen 2.5", slug="qwen-25", kind="item")
    EntityFactory(palace=palace, name="qwen 2.5", slug=slug_of("Qwen 2.5"), kind="item")
    numbered = EntityFactory(palace=palace, name="A*", slug="a-2", kind="item")
    room = file_transcript(palace, BATTERY).room
    renamed = ClosetFactory(palace=palace, room=room, title="1/2", slug="halves")
    wing = WingFactory(palace=palace, name="TCP/IP", slug="tcpip")
    aliases = [WingAlias(palace=palace, wing=wing, slug=slug) for slug in ("tcpip", "network")]
    WingAlias.objects.bulk_create(aliases)
    for _ in range(2):
        import_module("palace.migrations.0033_slugs_with_more_signs").rename(apps, None)
    rows = (old, kept, numbered, renamed, wing)
    for row in rows:
        row.refresh_from_db()
    assert [row.slug for row in rows] == [
        slug_of("Python 3.12"), "qwen-25", "a-2", "halves", slug_of("TCP/IP"),
    ]  # fmt: skip
    assert set(wing.aliases.values_list("slug", flat=True)) == {"network", slug_of("TCP/IP")}


def test_entities_that_nothing_names_go(palace):
    mentioned = MentionFactory(entity__palace=palace).entity
    fact = FactFactory(subject__palace=palace, object_entity=EntityFactory(palace=palace))
    EntityFactory(palace=palace)
    with connection.cursor() as cursor:
        cursor.execute(import_module("palace.migrations.0036_entities_of_resets").DELETE)
    left = {mentioned, fact.subject, fact.object_entity}
    assert set(Entity.objects.filter(palace=palace)) == left

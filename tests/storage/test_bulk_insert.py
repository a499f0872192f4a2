"""Many rows in one statement come back as they were given."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import DataError, transaction
from django.utils import timezone

from palace.models import Drawer, Entity, Wing
from palace.storage import bulk_insert
from palace.storage.bulk_insert import insert_rows
from tests.factories import RoomFactory, WingFactory

pytestmark = pytest.mark.django_db

COLUMNS = ("palace_id", "uuid", "kind", "slug", "name", "aliases", "created_at")
TEXTS = [
    "NULL",
    "",
    '"',
    "\\",
    "\\N",
    "{a,b}",
    "two\nlines\r\ttab",
    "it's 100 %s",
    "🜁 é\u2028",
    " x ",
]


def entity(palace, name, aliases=()):
    return (palace.pk, uuid4(), "person", uuid4().hex, name, list(aliases), timezone.now())


def test_any_text_is_kept_to_the_byte(palace):
    insert_rows(Entity, COLUMNS, [entity(palace, text, [text, "b"]) for text in TEXTS])
    found = Entity.objects.order_by("pk").values_list("name", "aliases")
    assert list(found) == [(text, [text, "b"]) for text in TEXTS]


def test_nothing_and_null_are_two_things(palace):
    room = RoomFactory(wing=WingFactory(palace=palace))
    columns = ("palace_id", "uuid", "room_id", "number", "source", "conversation", "external_id")
    columns += ("position", "role", "speaker", "text", "said_at", "metadata", "tags")
    columns += ("preference", "terms", "filed_at")
    now = timezone.now()
    row = (palace.pk, uuid4(), room.pk, 1, "a", "b", "c", 0, "user", "", "null", now)
    insert_rows(Drawer, columns, [(*row, None, "{}", 0.25, 3, now)])
    drawer = Drawer.objects.get()
    assert (drawer.text, drawer.metadata, drawer.tags) == ("null", None, {})
    assert (drawer.said_at, drawer.preference, drawer.terms) == (now, 0.25, 3)


def test_what_is_too_long_is_refused_and_not_cut(palace):
    with pytest.raises(DataError), transaction.atomic():
        insert_rows(Entity, COLUMNS, [entity(palace, "a" * 201)])
    assert not Entity.objects.exists()


def test_more_than_a_batch_keeps_its_order(palace, monkeypatch):
    monkeypatch.setattr(bulk_insert, "BATCH", 3)
    insert_rows(Entity, COLUMNS, (entity(palace, str(n)) for n in range(8)))
    assert list(Entity.objects.order_by("pk").values_list("name", flat=True)) == list("01234567")


def test_no_rows_are_no_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        insert_rows(Wing, ("palace_id",), [])

"""Messages for a palace that is locked for long, such as by a restore, are to be sent again."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from config import environment
from palace.models import Drawer, Palace
from tests.api.rest.conftest import client_of
from tests.config.test_environment import A_SERVER

SAID = {"role": "user", "content": "I have a cat called Miso."}
REQUESTS = {
    "/turns": {"user_id": "miso", "session_id": "1", "messages": [SAID]},
    "/v1/memories/": {"user_id": "miso", "messages": [SAID]},
}


@pytest.fixture
def restore(transactional_db, alice, settings):
    """Another session, which has locked the palace; its rollback ends that."""
    settings.LOCK_WAIT_S = 0.02
    palace = Palace.objects.create(owner=alice, subject="miso")
    other = connection.copy()
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT FROM palace_palace WHERE id = %s FOR UPDATE", [palace.pk])
        yield other
    other.rollback()
    other.close()


@pytest.mark.parametrize(("serves_web", "wait_s"), [(False, None), (True, 5)])
def test_only_the_web_gives_up(read_settings, monkeypatch, serves_web, wait_s):
    monkeypatch.setattr(environment, "serves_web", serves_web)
    assert wait_s == read_settings(**A_SERVER).LOCK_WAIT_S


@pytest.mark.parametrize("path", REQUESTS)
def test_a_write_is_to_be_sent_again_and_then_stored_once(restore, alice, path):
    program = client_of(alice)
    refused = program.post(path, REQUESTS[path])
    assert (refused.status_code, refused.json()["code"]) == (503, "locked"), refused.json()
    assert refused["Retry-After"] == "5"
    restore.rollback()
    assert program.post(path, REQUESTS[path]).status_code in (200, 201)
    assert [each.text for each in Drawer.objects.all()] == [SAID["content"]]


def test_what_comes_after_in_the_transaction_waits_for_as_long_as_it_takes(palace):
    with transaction.atomic(), connection.cursor() as cursor:
        palace.lock(within_s=5)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)

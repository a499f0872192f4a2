"""Whatever id can be stored can be read and deleted by its address."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from language.slugs import slug_of
from language.storable import storable_id
from palace.models import Drawer, Palace
from palace.working.ledger import Ledger, LedgerEntry
from tests.api.rest.conftest import client_of
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    FactFactory,
    PalaceFactory,
    RoomFactory,
    WingFactory,
)

IDS = [
    "a/b",
    "/a//b/",
    "a?b=c#d",
    "a%2Fb",
    "100%",
    "two words",
    ".",
    "..",
    "a/../b",
    "Zoë 東京 🙂",
    "line\nbreak",
    "a&b=c;d+e",
    "x/memories",
    "memories",
    "x" * 300,
]


def written(text):
    """As a careful client writes it; dots alone would be taken for a way up."""
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


@pytest.mark.some(6)
@pytest.mark.parametrize("name", IDS)
def test_a_user_is_read_and_deleted(owner, program, name):
    stored = PalaceFactory(owner=owner, subject=storable_id(name))
    fact = FactFactory(subject=EntityFactory(palace=stored), text="User plays the oboe")
    kept = PalaceFactory(owner=owner, subject="another")
    path = f"/users/{written(name)}"
    [shown] = program.get(f"{path}/memories").data["memories"]
    assert shown["text"] == fact.text
    assert program.delete(path).status_code == 204
    assert list(Palace.objects.filter(owner=owner)) == [kept]


@pytest.mark.some(5)
@pytest.mark.parametrize("name", IDS)
def test_a_session_is_deleted(owner, program, name):
    wing = WingFactory(palace=Palace.objects.own(owner))
    for session in (name, "another"):
        room = RoomFactory(wing=wing, source="api", external_id=storable_id(session))
        DrawerFactory(room=room)
    assert program.delete(f"/sessions/{written(name)}").status_code == 204
    assert [drawer.conversation for drawer in Drawer.objects.all()] == ["another"]


@pytest.mark.some(6)
@pytest.mark.parametrize("name", [name for name in IDS if "\n" not in name and len(name) < 200])
def test_what_lasts_for_a_while_is_read_by_its_conversation(owner, program, name):
    address = written(name)
    put = program.put(f"/working-memory/{address}", {"fields": {"step": 1}})
    assert put.status_code == 200, put.data
    got = program.get(f"/working-memory/{address}").data
    assert got == {"conversation_id": name, "fields": {"step": 1}}
    assert program.delete(f"/working-memory/{address}").data == {"deleted": 1}
    marked = program.post(f"/ledger/{address}/mark", {"item": "skill"})
    assert marked.data["injected"]
    assert program.get(f"/ledger/{address}").data["items"] == {"skill": "injected"}
    assert program.post(f"/ledger/{address}/check", {"item": "skill"}).data["injected"]
    assert program.post(f"/ledger/{address}/evict", {"item": "skill"}).data["evicted"]


@pytest.mark.some(6)
@pytest.mark.parametrize("name", [*IDS, "store", "search"])
def test_episodes_are_read_by_their_conversation(owner, program, name):
    stored = program.post("/episodic/store", {"conversation_id": name, "summary": "We met."})
    assert stored.status_code == 201, stored.data
    [found] = program.get(f"/episodic/{written(name)}").data["results"]
    assert found["id"] == stored.data["id"]


@pytest.mark.parametrize("name", ["store", "search", "a"])
def test_episodes_of_a_user_are_read_by_their_conversation(owner, program, name):
    said = {"conversation_id": name, "summary": "We met.", "user_id": "eq"}
    stored = program.post("/episodic/store", said).data["id"]
    [found] = program.get(f"/episodic/{name}?user_id=eq").data["results"]
    assert found["id"] == stored
    assert program.get(f"/episodic/{name}?userid=eq").status_code == 400


@pytest.mark.parametrize("step", ["check", "mark", "evict"])
def test_a_users_conversation_may_be_called_like_a_step(owner, program, step):
    palace = PalaceFactory(owner=owner, subject="eq")
    Ledger(palace, f"a/{step}").mark(LedgerEntry("skill"))
    shown = program.get(f"/ledger/a%2F{step}?user_id=eq")
    assert shown.data["items"] == {"skill": "injected"}
    assert program.get(f"/ledger/a%2F{step}?userid=eq").status_code == 400


@pytest.mark.parametrize("step", ["check", "mark", "evict"])
def test_a_conversation_may_be_called_like_a_step(owner, program, step):
    Ledger(Palace.objects.own(owner), f"x/{step}").mark(LedgerEntry("skill"))
    assert program.get(f"/ledger/x/{step}").data["items"] == {"skill": "injected"}
    assert program.get(f"/ledger/y/{step}").status_code == 405


def test_deleting_memories_of_a_user_is_no_way_to_delete_another(owner, program):
    palace = PalaceFactory(owner=owner, subject="x")
    assert program.delete("/users/x/memories").status_code == 405
    assert Palace.objects.filter(pk=palace.pk).exists()


@pytest.mark.parametrize("name", ["x", "x%2Fmemories"])
def test_deleting_a_user_that_is_not_there_succeeds(owner, program, name):
    assert program.delete(f"/users/{name}").status_code == 204


@pytest.mark.parametrize("name", ["AC/DC", "x/relations", "a?b#c", "50% off", "line\nbreak"])
def test_an_entity_is_named_in_an_address(owner, program, name):
    named = EntityFactory(palace=Palace.objects.own(owner), name=name, slug=slug_of(name))
    for what in ("relations", "timeline"):
        got = program.get(f"/v1/entities/{written(name)}/{what}/?agent_id=helper")
        assert got.status_code == 200, got.data
        assert got.data["entity"]["id"] == named.uuid


def test_a_key_without_admin_deletes_no_user(owner):
    PalaceFactory(owner=owner, subject="x/memories")
    writer = client_of(owner, scopes=("read", "write"))
    assert writer.delete("/users/x/memories").status_code == 403
    assert Palace.objects.filter(subject="x/memories").exists()

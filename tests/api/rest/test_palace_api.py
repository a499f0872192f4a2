from __future__ import annotations

import pytest

from palace.models import Drawer, Fact
from tests.api.rest.conftest import client_of
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    PalaceFactory,
    RoomFactory,
    WingFactory,
)


@pytest.fixture
def palace(owner):
    return PalaceFactory(owner=owner)


@pytest.fixture
def wing(palace):
    return WingFactory(palace=palace, number=42, name="Derek", slug="derek", kind="person")


@pytest.fixture
def room(wing):
    return RoomFactory(wing=wing, number=11)


@pytest.fixture
def drawers(room):
    closet = ClosetFactory(room=room)
    return [
        DrawerFactory(room=room, closet=closet, number=n, position=n, text=f"  Word {n}\r\n")
        for n in (1, 2, 3)
    ]


def walk(program, url):
    """All results of a list, page after page; each page is asked for twice, there and back."""
    results = []
    while url:
        page = program.get(url)
        assert page.status_code == 200, page.content
        results += page.json()["results"]
        url = page.json()["next"]
    return results


def test_one_walks_from_the_wings_to_the_words(program, wing, room, drawers):
    (shown,) = program.get("/v1/wings/").json()["results"]
    assert (shown["id"], shown["rooms"], shown["drawers"]) == (str(wing.uuid), 1, 3)
    (in_wing,) = program.get(f"/v1/wings/{wing.uuid}/rooms/").json()["results"]
    assert in_wing == program.get(f"/v1/rooms/{room.uuid}/").json()
    (closet,) = program.get(f"/v1/rooms/{room.uuid}/closets/").json()["results"]
    assert closet == program.get(f"/v1/closets/{closet['id']}/").json()
    said = walk(program, f"/v1/rooms/{room.uuid}/drawers/?limit=1")
    assert [each["text"] for each in said] == [drawer.text for drawer in drawers]
    whole = program.get(f"/v1/drawers/{said[0]['id']}/").json()
    assert whole["pointer"] == "§ W-042/R-11/D-001"
    assert (whole["text"], whole["facts"]) == ("  Word 1\r\n", [])
    asked = {"pointer": "w-42/r-11/d-1"}
    assert program.get("/v1/drawers/by-pointer/", asked).json() == whole


def test_drawers_of_one_moment_come_once_each_forwards_and_backwards(program, room):
    made = {str(DrawerFactory(room=room).uuid) for _ in range(7)}
    there = walk(program, "/v1/drawers/?limit=2")
    assert len(there) == 7
    assert {each["id"] for each in there} == made
    last = program.get("/v1/drawers/?limit=2")
    while last.json()["next"]:
        last = program.get(last.json()["next"])
    back = program.get(last.json()["previous"]).json()["results"]
    assert back == there[4:6]


def test_a_wing_is_renamed_only_by_who_saw_it_last(program, palace, wing, drawers):
    WingFactory(palace=palace, name="Efoil", slug="efoil")
    url = f"/v1/wings/{wing.uuid}/"
    seen = program.get(url)
    assert program.get(url, HTTP_IF_NONE_MATCH=seen["ETag"]).status_code == 304
    change = {"name": "Dirk", "kind": "agent", "aliases": ["The board"]}
    changed = program.patch(url, change, HTTP_IF_MATCH=seen["ETag"])
    assert changed.status_code == 200, changed.content
    assert changed.json() == {
        **seen.json(),
        "name": "Dirk",
        "kind": "agent",
        "aliases": ["derek", "the-board"],
    }
    assert changed["ETag"] == program.get(url)["ETag"] != seen["ETag"]
    late = program.patch(url, {"name": "Late"}, HTTP_IF_MATCH=seen["ETag"])
    assert (late.status_code, late.json()["code"]) == (412, "changed_meanwhile")
    assert program.delete(url, HTTP_IF_MATCH=seen["ETag"]).status_code == 412
    for taken in ({"name": "efoil"}, {"aliases": ["Efoil"]}):
        refused = program.patch(url, taken)
        assert (refused.status_code, refused.json()["code"]) == (409, "name_taken")
    wing.refresh_from_db()
    assert (wing.name, wing.slug) == ("Dirk", "dirk")


def test_a_wing_becomes_part_of_another_and_pointers_still_lead(program, palace, wing, drawers):
    other = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace))).room.wing
    merged = program.post(f"/v1/wings/{wing.uuid}/merge/", {"into": str(other.uuid)})
    assert merged.status_code == 200, merged.content
    assert (merged.json()["rooms"], merged.json()["wing"]["drawers"]) == (1, 4)
    assert program.get(f"/v1/wings/{wing.uuid}/").status_code == 404
    found = program.get("/v1/drawers/by-pointer/", {"pointer": "§ W-042/R-11/D-002"}).json()
    assert (found["id"], found["wing"]) == (str(drawers[1].uuid), str(other.uuid))


def test_the_trash_gives_back_what_it_got_and_only_an_admin_empties_it(program, owner, drawers):
    ids = [str(drawer.uuid) for drawer in drawers]
    url = f"/v1/drawers/{ids[0]}/"
    one = program.delete(url).json()
    assert program.get(url).status_code == 404
    both = program.post("/v1/drawers/trash/", {"drawers": ids}).json()
    assert (one["drawers"], both["drawers"]) == (1, 2)
    trashed = walk(program, "/v1/trash/?limit=1")
    assert [each["id"] for each in trashed] == [ids[1], ids[2], ids[0]]
    assert trashed[2]["text"] == drawers[0].text
    assert program.get("/v1/wings/").json()["results"] == []
    back = program.post("/v1/trash/restore/", {"batch": both["batch"]})
    assert back.json() == {"drawers": 2}
    assert program.post("/v1/trash/restore/", {"drawers": ids[:1]}).json() == {"drawers": 1}
    assert program.get(url).status_code == 200

    latest = [program.delete(f"/v1/drawers/{each}/").json()["batch"] for each in ids]
    writer = client_of(owner, scopes=("read", "write"))
    for request in (writer.post("/v1/trash/empty/", {}), writer.delete(f"/v1/trash/{ids[2]}/")):
        assert (request.status_code, request.json()["code"]) == (403, "missing_scope")
    assert program.delete(f"/v1/trash/{ids[2]}/").status_code == 204
    assert program.post("/v1/trash/empty/", {"up_to": 0}).status_code == 404
    assert program.post("/v1/trash/empty/", {"up_to": latest[0]}).json() == {
        "deleted": 1,
        "left": 0,
    }
    assert Drawer.objects.count() == 1
    assert program.post("/v1/trash/empty/", {}).json()["deleted"] == 1
    assert program.get(f"/v1/trash/{ids[1]}/").status_code == 404


def test_if_one_is_not_here_none_is_touched(program, stranger, drawers):
    ids = [str(drawer.uuid) for drawer in drawers]
    unknown = "00000000-0000-4000-8000-000000000000"
    refused = program.post("/v1/drawers/trash/", {"drawers": [*ids, unknown]})
    assert (refused.status_code, refused.json()["errors"]) == (404, {"drawers": [unknown]})
    PalaceFactory(owner=stranger)
    refused = client_of(stranger).post("/v1/drawers/trash/", {"drawers": ids})
    assert (refused.status_code, refused.json()["errors"]) == (404, {"drawers": ids})
    assert Drawer.objects.kept().count() == 3


def test_drawers_and_rooms_move_to_another_wing(program, palace, wing, room, drawers):
    other = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace, number=7))).room
    asked = {"drawers": [str(drawers[1].uuid)], "wing": str(other.wing.uuid)}
    moved = program.post("/v1/drawers/move/", asked)
    assert moved.status_code == 200, moved.content
    (one,) = moved.json()["drawers"]
    assert one["former_pointer"] == "§ W-042/R-11/D-002"
    assert one["wing"] == str(other.wing.uuid)
    found = program.get("/v1/drawers/by-pointer/", {"pointer": one["pointer"]}).json()
    assert (found["id"], found["text"]) == (one["id"], drawers[1].text)
    former = program.get("/v1/drawers/by-pointer/", {"pointer": one["former_pointer"]})
    assert former.status_code == 404
    strange = program.post(
        "/v1/drawers/move/", {"drawers": asked["drawers"], "room": str(other.uuid)}
    )
    assert (strange.status_code, strange.json()["code"]) == (400, "bad_move")
    rest = program.post(f"/v1/rooms/{room.uuid}/move/", {"wing": str(other.wing.uuid)})
    assert (rest.json()["id"], rest.json()["drawers"]) == (one["room"], 3)
    assert [each["number"] for each in program.get("/v1/wings/").json()["results"]] == [7]
    named = program.post(f"/v1/rooms/{one['room']}/move/", {"wing_name": "Boats & sails"})
    assert named.json()["number"] == rest.json()["number"]
    assert [each["number"] for each in program.get("/v1/wings/").json()["results"]] == [7, 43]
    reserved = {"drawers": asked["drawers"], "wing_name": "Unsorted"}
    assert program.post("/v1/drawers/move/", reserved).json()["code"] == "bad_wing"
    both = {**asked, "room": str(other.uuid)}
    assert program.post("/v1/drawers/move/", both).json()["code"] == "bad_input"


def test_a_key_that_only_writes_reads_nothing_by_moving_and_trashing(owner, wing, room, drawers):
    fact = FactFactory(subject=EntityFactory(palace=wing.palace), text="Derek plays the oboe")
    EvidenceFactory(fact=fact, drawer=drawers[0])
    other = WingFactory(palace=wing.palace, number=43, name="Music", slug="music")
    DrawerFactory(room=RoomFactory(wing=other), text="Another")
    writer = client_of(owner, scopes=("write",))
    changed = writer.patch(f"/v1/wings/{wing.uuid}/", {"aliases": []})
    assert (changed.json(), "ETag" in changed.headers) == ({"id": str(wing.uuid)}, False)
    moved = writer.post(f"/v1/rooms/{room.uuid}/move/", {"wing_name": "Oboes"})
    assert moved.json() == {"id": str(room.uuid)}
    room.refresh_from_db()
    merged = writer.post(f"/v1/wings/{room.wing.uuid}/merge/", {"into": str(other.uuid)})
    assert merged.json()["wing"] == {"id": str(other.uuid)}
    trashed = writer.delete(f"/v1/wings/{other.uuid}/")
    assert (trashed.json()["drawers"], trashed.json()["facts"]) == (4, [])
    assert not Fact.objects.active().filter(pk=fact.pk).exists()

"""What is deleted by the fact API is forgotten: its words are not given by any other address."""

from __future__ import annotations

import pytest

from config.audit import audit_palace
from palace.curation.trash import batch_key
from palace.mining.pipeline import mine_room
from palace.models import Drawer, Fact, IdempotentWrite, Palace, Room
from palace.models.facts import Evidence
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)

ALICE = {"user_id": "alice"}


def tell(program, text, **more):
    """One message by the fact API, mined as a worker would; the memories it made."""
    answer = program.post("/v1/memories/", {"messages": text, **ALICE, **more})
    for room in Room.objects.order_by("pk"):
        mine_room(room)
    return [event["id"] for event in answer.data["results"]]


def given(program, word):
    """The addresses that still give a word."""
    asked = {**ALICE, "query": f"Tell me about {word}"}
    answers = {
        "recall": program.post("/recall", asked),
        "search": program.post("/search", asked),
        "memories": program.get("/users/alice/memories"),
        "facts": program.get("/v1/memories/?user_id=alice"),
        "found": program.get(f"/v1/memories/search/?q={word}&user_id=alice"),
    }
    return {name for name, answer in answers.items() if word in answer.content.decode()}


@pytest.mark.django_db(transaction=True)
def test_a_deleted_memory_is_given_nowhere_and_comes_back_from_the_trash(program):
    [memory] = tell(program, "I live in Lisbon.")
    tell(program, "I play the oboe.")
    assert given(program, "Lisbon") == {"recall", "search", "memories", "facts", "found"}
    answer = program.delete(f"/v1/memories/{memory}/")
    assert answer.status_code == 204
    assert given(program, "Lisbon") == set()
    assert "oboe" in program.post("/search", {**ALICE, "query": "oboe"}).content.decode()
    [gone] = program.get("/v1/trash/?user_id=alice").data["results"]
    back = program.post("/v1/trash/restore/?user_id=alice", {"batch": gone["batch"]})
    assert back.data == {"drawers": 1}
    assert given(program, "Lisbon") == {"recall", "search", "memories", "facts", "found"}
    assert program.get(f"/v1/memories/{memory}/").data["memory"] == "User lives in Lisbon"


@pytest.mark.django_db(transaction=True)
def test_delete_all_forgets_the_words_and_reset_purges_them(program):
    for text in ("I live in Lisbon.", "Lisbon is lovely, isn't it?"):
        tell(program, text)
    turn = {"session_id": "s", **ALICE, "messages": [{"role": "user", "content": "I own a boat."}]}
    program.post("/turns", turn)
    answer = program.delete("/v1/memories/?user_id=alice")
    assert answer.data["deleted"] == Fact.objects.filter(fate="deleted").count() > 0
    assert given(program, "Lisbon") == set()
    # What came by another door stays, and is listed.
    [kept] = answer.data["kept"]
    assert answer.data["kept_total"] == 1
    assert (kept["why"], kept["session_id"], kept["memories"]) == ("other_source", "s", [])
    assert given(program, "boat") == {"recall", "search"}
    assert Drawer.objects.filter(source="sdk").trashed().count() == 2
    assert program.post("/v1/reset/").status_code == 204
    assert [drawer.text for drawer in Drawer.objects.all()] == ["I own a boat."]
    assert not Fact.objects.exists()
    assert not IdempotentWrite.objects.filter(body__icontains="Lisbon").exists()


@pytest.mark.django_db(transaction=True)
def test_a_reset_leaves_no_name_of_somebody_who_was_only_in_memories(program):
    turn = {"session_id": "s", **ALICE, "messages": [{"role": "user", "content": "I own a boat."}]}
    program.post("/turns", turn)
    tell(program, "My sister is called Ida. I live in Lisbon.")
    assert program.get("/v1/entities/?user_id=alice").data["results"]
    assert program.post("/v1/reset/").status_code == 204
    names = [each["name"] for each in program.get("/v1/entities/?user_id=alice").data["results"]]
    assert not {"Ida", "Lisbon"} & {*names}
    assert [each.check for each in audit_palace(Palace.objects.get()) if each.wrong] == []


@pytest.fixture
def palace(owner):
    return Palace.objects.own(owner)


def fact_on(*drawers, text="User lives in Lisbon", **more):
    subject = EntityFactory(palace=drawers[0].palace)
    fact = FactFactory(subject=subject, text=text, **more)
    for drawer in drawers:
        EvidenceFactory(fact=fact, drawer=drawer)
    return fact


def drawer_in(palace, source="sdk", **more):
    room = RoomFactory(wing=WingFactory(palace=palace), source=source)
    return DrawerFactory(room=room, **more)


def trashed():
    return set(Drawer.objects.trashed().values_list("pk", flat=True))


def test_words_that_another_memory_rests_on_stay_and_are_listed(program, palace):
    own, shared = drawer_in(palace), drawer_in(palace)
    chat = drawer_in(palace, "chat")
    first = fact_on(own, shared, chat)
    second = fact_on(shared, text="User works in Lisbon")
    answer = program.delete(f"/v1/memories/{first.memory}/")
    assert answer.status_code == 200
    assert trashed() == {own.pk}
    assert answer.data["deleted"] == 1
    reasons = {each["drawer"]: (each["why"], each["memories"]) for each in answer.data["kept"]}
    assert reasons == {
        str(shared.uuid): ("other_memory", [str(second.memory)]),
        str(chat.uuid): ("other_source", []),
    }
    # The last one that rests on them takes them along.
    assert program.delete(f"/v1/memories/{second.memory}/").status_code == 204
    assert trashed() == {own.pk, shared.pk}


def test_the_words_of_earlier_versions_go_too(program, palace):
    old, new = drawer_in(palace), drawer_in(palace)
    before = fact_on(old, text="User lives in Porto", retired_at=new.said_at, fate="superseded")
    now = fact_on(new, memory=before.memory, supersedes=before)
    assert program.delete(f"/v1/memories/{now.memory}/").status_code == 204
    assert trashed() == {old.pk, new.pk}
    assert program.get("/users/alice/memories").data["total"] == 0


def test_what_was_superseded_is_still_on_the_list_of_a_user(program, palace):
    palace.subject = "alice"
    palace.save()
    drawer = drawer_in(palace)
    before = fact_on(drawer, text="User lives in Porto", retired_at=drawer.said_at, fate="ended")
    fact_on(drawer, memory=before.memory)
    shown = program.get("/users/alice/memories").data["memories"]
    assert {each["text"]: each["active"] for each in shown} == {
        "User lives in Porto": False,
        "User lives in Lisbon": True,
    }


def test_one_drawer_that_comes_back_brings_only_what_was_deleted_with_it(program, palace):
    first, second = drawer_in(palace), drawer_in(palace)
    facts = [fact_on(first, text="One"), fact_on(second, text="Two")]
    assert program.delete("/v1/memories/?agent_id=none").data["deleted"] == 0
    assert program.delete("/v1/memories/?run_id=none").data["deleted"] == 0
    assert trashed() == set()
    Fact.objects.update(agent="helper")
    answer = program.delete("/v1/memories/?agent_id=helper").data
    assert answer == {"deleted": 2, "kept": [], "kept_total": 0}
    assert trashed() == {first.pk, second.pk}
    first.refresh_from_db()
    assert batch_key(first.trashed_at) == program.get("/v1/trash/").data["results"][0]["batch"]
    program.post("/v1/trash/restore/", {"drawers": [str(first.uuid)]})
    assert [fact.text for fact in Fact.objects.active()] == ["One"]
    assert Evidence.objects.get(fact=Fact.objects.active().get()).drawer_id == first.pk
    assert not Fact.objects.active().filter(memory=facts[1].memory).exists()


def test_a_memory_deleted_before_its_drawer_does_not_come_back_with_it(program, palace):
    chat = drawer_in(palace, "chat")
    fact = fact_on(chat)
    assert program.delete(f"/v1/memories/{fact.memory}/").status_code == 200
    assert program.delete(f"/v1/drawers/{chat.uuid}/").status_code == 200
    program.post("/v1/trash/restore/", {"drawers": [str(chat.uuid)]})
    assert not Fact.objects.active().exists()


def test_a_run_is_forgotten_and_others_stay(program, palace):
    mine, other = drawer_in(palace), drawer_in(palace)
    idle = DrawerFactory(room=mine.room, position=9)
    fact_on(mine, run=mine.conversation)
    fact_on(other, run=other.conversation)
    answer = program.delete(f"/v1/memories/?run_id={mine.conversation}").data
    assert (answer["deleted"], answer["kept"]) == (1, [])
    assert trashed() == {mine.pk, idle.pk}

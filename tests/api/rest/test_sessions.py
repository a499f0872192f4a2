"""DELETE /sessions/{id}: one user's conversation, whichever door it came by."""

from __future__ import annotations

import pytest

from palace.models import Drawer, Episode, Fact, IdempotentWrite, Palace
from tests.api.rest.conftest import client_of
from tests.factories import (
    DrawerFactory,
    EvidenceFactory,
    FactFactory,
    PalaceFactory,
    RoomFactory,
    WingFactory,
)


def said(palace, source="api", session="monday"):
    room = RoomFactory(
        wing=WingFactory(palace=palace), source=source, external_id=session, title="Monday"
    )
    return DrawerFactory(room=room)


def left():
    return set(Drawer.objects.values_list("pk", flat=True))


@pytest.fixture
def two(owner):
    """Two users with a session of the same name."""
    palaces = [PalaceFactory(owner=owner, subject=name) for name in ("ann", "ben")]
    return {palace.subject: said(palace) for palace in palaces}


def test_of_several_users_none_loses_the_session(program, two):
    answer = program.delete("/sessions/monday")
    assert answer.status_code == 409
    assert answer.data["code"] == "ambiguous_session"
    assert "user_id" in answer.data["detail"]
    assert left() == {drawer.pk for drawer in two.values()}


def test_a_user_who_is_named_loses_only_theirs(program, two):
    assert program.delete("/sessions/monday?user_id=ann").status_code == 204
    assert left() == {two["ben"].pk}
    # Now it is plain whose is meant.
    assert program.delete("/sessions/monday").status_code == 204
    assert left() == set()


def test_the_owners_own_session_counts_too(owner, program, two):
    two["ben"].delete()
    own = said(Palace.objects.own(owner))
    assert program.delete("/sessions/monday").status_code == 409
    assert own.pk in left()


def test_a_key_of_one_palace_means_that_one(owner, two):
    assert client_of(owner, subject="ann").delete("/sessions/monday").status_code == 204
    assert left() == {two["ben"].pk}


def test_a_stranger_finds_and_deletes_nothing(strangers_program, two):
    assert strangers_program.delete("/sessions/monday").status_code == 204
    assert strangers_program.delete("/sessions/monday?user_id=ann").status_code == 204
    assert len(left()) == 2


def test_an_unknown_session_is_no_error(program, two):
    assert program.delete("/sessions/tuesday").status_code == 204
    assert len(left()) == 2


@pytest.mark.parametrize("source", ["api", "sdk", "mcp", "proxy"])
def test_a_session_is_deleted_by_whatever_door_it_came(owner, program, source):
    drawer = said(Palace.objects.own(owner), source)
    evidence = EvidenceFactory(
        fact=FactFactory(subject__palace=drawer.palace, text="User owns a boat"), drawer=drawer
    )
    assert program.delete("/sessions/monday").status_code == 204
    assert left() == set()
    assert not Fact.objects.filter(pk=evidence.fact_id).exists()


def test_a_sessions_stored_summaries_go_with_it(owner, program, strangers_program):
    for user in ("ann", "ben"):
        body = {"conversation_id": "monday", "summary": "A train.", "user_id": user}
        headers = {"Idempotency-Key": user}
        assert program.post("/episodic/store", body, headers=headers).status_code == 201
    said(Palace.objects.get(subject="ann"))
    assert strangers_program.delete("/sessions/monday?user_id=ann").status_code == 204
    assert program.delete("/sessions/monday").status_code == 409
    assert Episode.objects.count() == 2
    assert program.delete("/sessions/monday?user_id=ann").status_code == 204
    assert left() == set()
    assert [each.palace.subject for each in Episode.objects.all()] == ["ben"]
    assert program.delete("/sessions/monday").status_code == 204
    assert not Episode.objects.exists()
    # The stored answer would repeat the summary.
    assert not IdempotentWrite.objects.exclude(body=None, fingerprint="").exists()


def test_a_summary_stays_while_an_import_has_its_conversation(owner, program):
    drawer = said(Palace.objects.own(owner), "chatgpt")
    body = {"conversation_id": drawer.conversation, "summary": "A train."}
    assert program.post("/episodic/store", body).status_code == 201
    assert program.delete(f"/sessions/{drawer.conversation}").status_code == 204
    assert Episode.objects.count() == 1


def test_what_was_imported_is_no_session(owner, program):
    drawer = said(Palace.objects.own(owner), "chatgpt")
    assert program.delete("/sessions/monday").status_code == 204
    assert left() == {drawer.pk}


@pytest.mark.django_db(transaction=True)
def test_a_run_is_deleted_as_a_session(program):
    body = {"messages": "I live in Lisbon.", "user_id": "ann", "run_id": "monday"}
    assert program.post("/v1/memories/", body).data["results"]
    assert left()
    assert program.delete("/sessions/monday").status_code == 204
    assert left() == set()


def test_a_run_is_a_session(program):
    body = {"messages": "I live in Lisbon.", "user_id": "ann", "run_id": "monday/1"}
    assert program.post("/v1/memories/", body).data["results"]
    asked = {"query": "Where does she live?", "user_id": "ann", "session_id": "monday/1"}
    assert "Lisbon" in program.post("/recall", asked).data["context"]
    assert program.delete("/sessions/monday%2F1").status_code == 204
    assert left() == set()
    assert program.get("/v1/memories/?user_id=ann").data == {"results": []}
    assert program.post("/recall", asked).data["context"] == ""

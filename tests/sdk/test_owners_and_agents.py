"""Whose memories: the owner, and the agents that a person speaks with."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from palace.models import Drawer
from palace.sdk import (
    BadInput,
    Memory,
    PalaceError,
    SetupError,
)
from tests.sdk.contract_calls import NEEDED, texts


def test_an_owner_is_found_by_name_or_address(alice):
    assert Memory("alice").owner == Memory("ALICE@example.org").owner == alice


def test_an_owner_who_is_not_there_is_made_without_a_password(db):
    made = Memory("new@example.org").owner
    assert (made.username, made.email) == ("new@example.org", "new@example.org")
    assert not made.has_usable_password()
    assert not made.is_superuser
    assert Memory("new@example.org").owner == made
    assert Memory("somebody").owner.email == ""


def test_where_there_is_nobody_the_owner_is_made(db):
    made = Memory().owner
    assert made.is_superuser
    assert not made.has_usable_password()
    assert Memory().owner == made


def test_an_address_of_two_is_asked_about(alice):
    get_user_model().objects.create_user("alice2", "alice@example.org")
    with pytest.raises(BadInput, match="More than one account has the address"):
        Memory("alice@example.org")


@pytest.mark.parametrize("name", ["", "  ", "x" * 151, "a\0b"])
def test_nobody_has_such_a_name(db, name):
    with pytest.raises(BadInput, match="An owner is a name or an address"):
        Memory(name)


@pytest.mark.parametrize("owner", [5, b"alice", []])
def test_an_owner_is_a_name_or_an_account(db, owner):
    with pytest.raises(BadInput, match="owner is an account's name or address, not"):
        Memory(owner)


def test_a_closed_account_remembers_nothing(alice):
    alice.is_active = False
    alice.save()
    with pytest.raises(SetupError, match="is closed"):
        Memory("alice")


def test_on_a_server_somebody_is_named(alice, settings):
    settings.USES_EMBEDDED_SERVICES = False
    with pytest.raises(SetupError, match="name one"):
        Memory()


def test_the_sentence_about_the_scope_is_the_contracts(plain):
    with pytest.raises(PalaceError) as caught:
        plain.get_all()
    assert str(caught.value) == NEEDED


def test_words_and_facts_said_to_an_agent_stay_with_it(plain, alice):
    words = "The spare key lies under the blue flowerpot. I live in Porto."
    plain.add(words, user_id="nora", agent_id="butler")
    [kept] = Drawer.objects.filter(palace__subject="nora")
    assert (kept.text, kept.agent) == (words, "butler")
    asked = {"query": "Where does the user live?", "user_id": "nora"}
    assert texts(plain.search(**asked)) == texts(plain.search(**asked, agent_id="butler"))
    assert plain.search(**asked, agent_id="cook") == {"results": []}
    assert plain.delete_all(user_id="nora", agent_id="cook") == 0
    assert plain.delete_all(user_id="nora", agent_id="butler") == 1
    kept.refresh_from_db()
    assert kept.trashed_at


def test_the_same_words_of_two_agents_are_two_messages(plain):
    message = {"role": "user", "content": "I live in Porto."}
    plain.add([message], agent_id="butler", run_id="r1")
    plain.add([message], agent_id="cook", run_id="r1")
    agents = Drawer.objects.order_by("pk").values_list("agent", flat=True)
    assert list(agents) == ["butler", "cook"]


def test_messages_of_earlier_versions_get_their_agent(plain):
    plain.add("I live in Porto.", agent_id="butler")
    plain.add("I like chess.", run_id="r2")
    expected = list(Drawer.objects.order_by("pk").values_list("agent", flat=True))
    assert expected == ["butler", ""]
    Drawer.objects.update(agent="")
    migration = import_module("palace.migrations.0027_drawers_of_agents")
    with connection.cursor() as cursor:
        cursor.execute(migration.BACKFILL)
    assert list(Drawer.objects.order_by("pk").values_list("agent", flat=True)) == expected

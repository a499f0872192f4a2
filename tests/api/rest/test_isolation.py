"""Every address of the API, asked by a stranger and by a key for another palace.

An address that has no case here fails the first test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import transaction
from django.urls import URLPattern, get_resolver
from rest_framework.test import APIClient

from language.transcripts import Transcript, Turn
from palace.knowledge.episodes.episode_store import store_episode
from palace.mining.pipeline import mine_at_once
from palace.models import Drawer, Fact, Palace, RecollectionTrace, Webhook, Wing
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.working import put_fields
from palace.working.entries import set_entry
from palace.working.redis_keys import Namespace
from tests.api.rest.conftest import client_of
from tests.conversations import START
from tests.factories import DrawerFactory, RoomFactory, WingFactory

WORD = "Goffriller"
SAID = f"I live in Lisbon. My sister Ada plays a cello by {WORD}."

# What shows nothing of anybody.
OPEN = {"schema", "reference"}


@dataclass(frozen=True)
class Asked:
    """One request, and what becomes of it when somebody else sends it.

    Attributes:
        stranger: The status a stranger gets: 404 where the address holds an id of ours; where
            names are the caller's own, what is said of a name that means nobody.
    """

    method: str
    path: str
    body: Any = None
    stranger: int = 404


Case = Callable[[Drawer], list[Asked]]

USER = {"user_id": "ada"}
CASES: dict[str, Case] = {
    "export": lambda drawer: [Asked("get", "/v1/export?user_id=ada")],
    "webhooks": lambda drawer: [Asked("get", "/v1/webhooks/", None, 200)],
    "webhook": lambda drawer: [
        Asked("get", f"/v1/webhooks/{webhook(drawer).uuid}/"),
        Asked("patch", f"/v1/webhooks/{webhook(drawer).uuid}/", {"enabled": False}),
        Asked("delete", f"/v1/webhooks/{webhook(drawer).uuid}/"),
    ],
    "webhook_test": lambda drawer: [Asked("post", f"/v1/webhooks/{webhook(drawer).uuid}/test/")],
    "webhook_secret": lambda drawer: [
        Asked("post", f"/v1/webhooks/{webhook(drawer).uuid}/secret/")
    ],
    "webhook_deliveries": lambda drawer: [
        Asked("get", f"/v1/webhooks/{webhook(drawer).uuid}/deliveries/")
    ],
    "conversations": lambda drawer: [],  # As turns.
    "turns": lambda drawer: [],  # Makes a palace of the stranger's own; test_nothing_mixes.
    "recall": lambda drawer: [Asked("post", "/recall", {"query": WORD, **USER}, 200)],
    "search": lambda drawer: [Asked("post", "/search", {"query": WORD, **USER}, 200)],
    "user_memories": lambda drawer: [Asked("get", "/users/ada/memories", None, 200)],
    "user": lambda drawer: [Asked("delete", "/users/ada", None, 204)],
    "wings": lambda drawer: [Asked("get", "/v1/wings/?user_id=ada", None, 200)],
    "wing": lambda drawer: [
        Asked("get", f"/v1/wings/{drawer.room.wing.uuid}/?user_id=ada"),
        Asked("patch", f"/v1/wings/{drawer.room.wing.uuid}/?user_id=ada", {"name": "Taken over"}),
        Asked("delete", f"/v1/wings/{drawer.room.wing.uuid}/?user_id=ada"),
    ],
    "wing_merge": lambda drawer: [
        Asked(
            "post",
            f"/v1/wings/{drawer.room.wing.uuid}/merge/?user_id=ada",
            {"into": str(elsewhere(drawer).uuid)},
        )
    ],
    "wing_rooms": lambda drawer: [
        Asked("get", f"/v1/wings/{drawer.room.wing.uuid}/rooms/?user_id=ada")
    ],
    "room": lambda drawer: [
        Asked("get", f"/v1/rooms/{drawer.room.uuid}/?user_id=ada"),
        Asked("delete", f"/v1/rooms/{drawer.room.uuid}/?user_id=ada"),
    ],
    "room_closets": lambda drawer: [
        Asked("get", f"/v1/rooms/{drawer.room.uuid}/closets/?user_id=ada")
    ],
    "room_drawers": lambda drawer: [
        Asked("get", f"/v1/rooms/{drawer.room.uuid}/drawers/?user_id=ada")
    ],
    "closet": lambda drawer: [
        Asked("get", f"/v1/closets/{drawer.closet.uuid}/?user_id=ada"),
        Asked("delete", f"/v1/closets/{drawer.closet.uuid}/?user_id=ada"),
    ],
    "drawers": lambda drawer: [
        Asked("get", "/v1/drawers/?user_id=ada", None, 200),
        Asked("get", f"/v1/drawers/?room={drawer.room.uuid}&user_id=ada", None, 200),
    ],
    "by_pointer": lambda drawer: [
        Asked("get", f"/v1/drawers/by-pointer/?pointer={drawer.pointer}&user_id=ada")
    ],
    "drawer": lambda drawer: [
        Asked("get", f"/v1/drawers/{drawer.uuid}/?user_id=ada"),
        Asked("delete", f"/v1/drawers/{drawer.uuid}/?user_id=ada"),
    ],
    "drawers_trash": lambda drawer: [
        Asked("post", "/v1/drawers/trash/?user_id=ada", {"drawers": [str(drawer.uuid)]})
    ],
    "room_move": lambda drawer: [
        Asked(
            "post",
            f"/v1/rooms/{drawer.room.uuid}/move/?user_id=ada",
            {"wing": str(elsewhere(drawer).uuid)},
        )
    ],
    "drawers_move": lambda drawer: [
        Asked(
            "post",
            "/v1/drawers/move/?user_id=ada",
            {"drawers": [str(drawer.uuid)], "wing": str(elsewhere(drawer).uuid)},
        )
    ],
    "trash": lambda drawer: [Asked("get", "/v1/trash/?user_id=ada", None, 200)],
    "trashed": lambda drawer: [
        Asked("get", f"/v1/trash/{trashed(drawer).uuid}/?user_id=ada"),
        Asked("delete", f"/v1/trash/{trashed(drawer).uuid}/?user_id=ada"),
    ],
    "trash_restore": lambda drawer: [
        Asked(
            "post",
            "/v1/trash/restore/?user_id=ada",
            {"drawers": [str(trashed(drawer).uuid)]},
        )
    ],
    "trash_empty": lambda drawer: [Asked("post", "/v1/trash/empty/?user_id=ada", {})],
    "recollections": lambda drawer: [Asked("get", "/v1/recollections/?user_id=ada", None, 200)],
    "recollection": lambda drawer: [
        Asked("get", f"/v1/recollections/{trace(drawer).uuid}/?user_id=ada")
    ],
    "activity": lambda drawer: [Asked("get", "/v1/activity/?user_id=ada", None, 200)],
    # The owner's alone; a stranger sees the stranger's.
    "usage": lambda drawer: [Asked("get", "/v1/usage/", None, 200)],
    "settings": lambda drawer: [
        Asked("get", "/v1/settings/", None, 200),
        Asked("patch", "/v1/settings/", {"top_k": 7}, 200),
    ],
    "palaces": lambda drawer: [Asked("get", "/v1/palaces/", None, 200)],
    "session": lambda drawer: [Asked("delete", "/sessions/one", None, 204)],
    "memories": lambda drawer: [
        Asked("get", "/v1/memories/?user_id=ada", None, 200),
        Asked("delete", "/v1/memories/?user_id=ada", None, 200),
    ],
    "search_memories": lambda drawer: [
        Asked("get", f"/v1/memories/search/?q={WORD}&user_id=ada", None, 200),
        Asked("post", "/v1/memories/search/", {"query": WORD, **USER}, 200),
    ],
    "memory": lambda drawer: [
        Asked("get", f"/v1/memories/{memory(drawer)}/"),
        Asked("put", f"/v1/memories/{memory(drawer)}/", {"text": "Taken over"}),
        Asked("delete", f"/v1/memories/{memory(drawer)}/"),
    ],
    "history": lambda drawer: [Asked("get", f"/v1/memories/{memory(drawer)}/history/", None, 200)],
    "reset": lambda drawer: [Asked("post", "/v1/reset/", None, 204)],
    "entities": lambda drawer: [
        Asked("get", "/v1/entities/?user_id=ada", None, 200),
        Asked("post", "/v1/entities/", USER, 200),
    ],
    "relations": lambda drawer: [Asked("get", "/v1/entities/Ada/relations/?user_id=ada")],
    "timeline": lambda drawer: [Asked("get", "/v1/entities/Ada/timeline/?user_id=ada")],
    "entry": lambda drawer: [
        Asked("get", f"{noted(drawer)}?user_id=ada"),
        Asked("delete", f"{noted(drawer)}?user_id=ada", None, 200),
    ],
    "working_memory": lambda drawer: [
        Asked("get", "/working-memory/one?user_id=ada", None, 200),
        Asked("delete", "/working-memory/one?user_id=ada", None, 200),
    ],
    "entries": lambda drawer: [
        Asked("get", "/namespaces/session/one/entries?user_id=ada", None, 200)
    ],
    "search_entries": lambda drawer: [
        Asked("post", "/namespaces/session/one/search", {"query": WORD, **USER}, 200)
    ],
    "inventory": lambda drawer: [
        Asked("get", "/namespaces/session/one/inventory?user_id=ada", None, 200)
    ],
    "store_episode": lambda drawer: [],  # As turns.
    "search_episodes": lambda drawer: [
        Asked("post", "/episodic/search", {"query": WORD, **USER}, 200)
    ],
    "episodes": lambda drawer: [Asked("get", "/episodic/one?user_id=ada", None, 200)],
    "ledger": lambda drawer: [Asked("get", "/ledger/one?user_id=ada", None, 200)],
    "check_item": lambda drawer: [Asked("post", "/ledger/one/check", {"item": "a", **USER}, 200)],
    "mark_item": lambda drawer: [],  # As turns.
    "evict_item": lambda drawer: [Asked("post", "/ledger/one/evict", {"item": "a", **USER}, 200)],
}


def names(patterns: Any = None) -> Iterator[str]:
    """Of all addresses within the namespace `api`."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLPattern):
            if patterns is not None:
                yield str(pattern.name)
        elif pattern.namespace == "api" or patterns is not None:
            yield from names(pattern.url_patterns)
        else:
            yield from _inside(pattern)


def _inside(pattern: Any) -> Iterator[str]:
    for inner in pattern.url_patterns:
        if not isinstance(inner, URLPattern) and inner.namespace == "api":
            yield from names(inner.url_patterns)


@pytest.fixture
def drawer(owner, db):
    """Said in the palace of one whom the owner serves."""
    palace = Palace.objects.create(owner=owner, subject="ada")
    turns = (Turn("turn/0", "user", SAID, START),)
    mine_at_once(palace, Transcript("api", "one", "", turns), seconds=30)
    drawer = Drawer.objects.get(palace=palace)
    another = RoomFactory(wing=WingFactory(palace=palace, number=900), number=900)
    DrawerFactory(room=another, text=WORD)
    DrawerFactory(room=another, text=WORD, trashed_at=START)
    recall(palace, RecallRequest(WORD))
    return drawer


def memory(drawer: Drawer) -> UUID:
    return Fact.objects.filter(palace=drawer.palace).order_by("pk")[0].memory


def elsewhere(drawer: Drawer) -> Wing:
    """A wing of the same palace that the drawer is not in."""
    return Wing.objects.filter(palace=drawer.palace).exclude(rooms=drawer.room).latest("pk")


def trashed(drawer: Drawer) -> Drawer:
    return Drawer.objects.within(drawer.palace).trashed()[0]


def noted(drawer: Drawer) -> str:
    """An entry of working memory, and beside it what else is noted."""
    set_entry(drawer.palace, Namespace.read("session/one"), "cello", SAID)
    put_fields(drawer.palace, "one", {"scratchpad": SAID})
    store_episode(drawer.palace, conversation="one", summary=SAID)
    return "/namespaces/session/one/entries/cello"


def webhook(drawer: Drawer) -> Webhook:
    """It gets the events of the drawer's palace; its address is its owner's secret."""
    url = f"https://example.org/{WORD}"
    data = {"owner": drawer.palace.owner, "subject": "ada", "url": url, "events": ["mined"]}
    return Webhook.objects.get_or_create(**data)[0]


def trace(drawer: Drawer) -> RecollectionTrace:
    return RecollectionTrace.objects.filter(palace=drawer.palace)[0]


def each(drawer: Drawer) -> Iterator[Asked]:
    for case in CASES.values():
        yield from case(drawer)


def send(client: APIClient, asked: Asked) -> Any:
    return getattr(client, asked.method)(asked.path, asked.body)


def everything() -> dict[Any, list[Any]]:
    """Every row that belongs to a palace."""
    tables = [m for m in apps.get_models() if any(f.name == "palace" for f in m._meta.fields)]
    return {model: list(model.objects.order_by("pk").values()) for model in tables}


def nothing_is_gone(before: dict[Any, list[Any]]) -> None:
    after = everything()
    for model, rows in before.items():
        assert [row for row in rows if row not in after[model]] == [], model


def reveals_nothing(asked: Asked, response: Any) -> None:
    said = b"".join(response) if response.streaming else response.content
    for word in (WORD, "Lisbon"):
        assert word not in said.decode(errors="replace"), asked


def test_every_address_has_a_case():
    assert set(names()) - OPEN == set(CASES)


def test_a_stranger_finds_and_changes_nothing(strangers_program, drawer):
    before = everything()
    for asked in each(drawer):
        response = send(strangers_program, asked)
        assert response.status_code == asked.stranger, (asked, response.content)
        reveals_nothing(asked, response)
    nothing_is_gone(before)


def test_a_key_for_another_palace_finds_and_changes_nothing(owner, drawer):
    program = client_of(owner, subject="bob")
    before = everything()
    for asked in each(drawer):
        response = send(program, asked)
        assert response.status_code in (403, 404, asked.stranger), (asked, response.content)
        reveals_nothing(asked, response)
    nothing_is_gone(before)


def test_without_a_key_there_is_nothing(drawer):
    for asked in each(drawer):
        assert send(APIClient(), asked).status_code == 401, asked


def test_the_owner_gets_there(owner, drawer):
    """Else a stranger's 404 would prove nothing."""
    program = client_of(owner)
    for asked in each(drawer):
        before = transaction.savepoint()
        response = send(program, asked)
        assert response.status_code < 400, (asked, response.content)
        transaction.savepoint_rollback(before)


@pytest.mark.django_db(transaction=True)
def test_nothing_mixes(strangers_program, drawer):
    data = {"session_id": "one", "messages": [{"role": "user", "content": "I am another."}], **USER}
    assert strangers_program.post("/turns", data).status_code == 201
    assert Drawer.objects.filter(palace=drawer.palace).count() == 3
    assert drawer.palace.owner.username == "owner"

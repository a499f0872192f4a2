"""Every operation of the API, called once in an order in which each has something to answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from api.rest.openapi import A_BATCH, EXAMPLES, OPERATION_NAMES

Json = dict[str, Any]
Call = Callable[..., Any]

OF_ADA = "?user_id=ada"
MOMENT = "2026-05-08T09:30:00Z"
SPOKEN = {
    "lenses": "Nora recommended the 35 mm lens for the market.",
    "kitchen": "My sister Nora lives in Porto. She is allergic to walnuts.",
    "harbour": "We keep the tripod in the blue cupboard of the harbour office.",
    "dogs": "I adopted a dog named Biscuit.",
}
# What a recording may not keep, as it is another one each time.
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_MONTH = re.compile(r"20\d\d-\d\d-01")
_SEAL = re.compile(r"(?<=Seal: )[0-9a-f]+")
_CLIENTS_ID = re.compile(r"\b(chatcmpl|resp|msg)([-_])[0-9a-f]{16,}")
_SAID = re.compile(r"[A-Z][a-z]{2} \d\d [A-Z][a-z]{2} 20\d\d, \d\d:\d\d")
_SECRET = re.compile(r"\bwhsec_[\w+/=-]+")
_SAME = {"duration_ms": 42.0, "year": 2026}
_RECENT_US, _RECENT_S = 1_700_000_000_000_000, 1_700_000_000
# A vector has hundreds of numbers; its first ones show what it is.
_VECTOR = 3


@dataclass(slots=True)
class Recording:
    """The first answer of each operation; what differs from run to run is replaced.

    Attributes:
        answers: By name of operation and status.
    """

    client: httpx2.Client
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    _ids: dict[str, str] = field(default_factory=dict)

    def call(self, name: str, /, body: Any = None, query: str = "", **places: str) -> Any:
        """The real answer; `body` is that of the schema's example where none is given."""
        [label] = [label for label, known in OPERATION_NAMES.items() if known == name]
        method, path = label.split()
        address = re.sub(r"{(\w+)}", lambda found: places[found[1]], path)
        sent = EXAMPLES.get(name) if body is None else body
        options = {} if sent is None else {"json": sent}
        answer = self.client.request(method, f"{address}{query}", **options)
        assert answer.status_code < 300, (name, answer.status_code, answer.text)
        self.called.add(name)
        if answer.headers.get("content-type") != "application/json":
            return None
        self.answers.setdefault(name, {str(answer.status_code): self._stable(answer.json())})
        return answer.json()

    def _stable(self, value: Any) -> Any:
        if isinstance(value, dict):
            same = {name: of for name, of in _SAME.items() if name in value}
            return {self._stable(name): self._stable(of) for name, of in (value | same).items()}
        if isinstance(value, list):
            is_vector = len(value) > _VECTOR and all(isinstance(each, float) for each in value)
            return [self._stable(each) for each in (value[:_VECTOR] if is_vector else value)]
        if isinstance(value, str):
            return self._stable_text(value)
        if isinstance(value, float):
            return round(value, 3)
        if isinstance(value, int) and value > _RECENT_S:
            return A_BATCH if value > _RECENT_US else A_BATCH // 1_000_000
        return value

    def _stable_text(self, text: str) -> str:
        text = _UUID.sub(lambda found: self._id(found[0]), text)
        text = _MONTH.sub("2026-05-01", _TIME.sub(MOMENT, text))
        text = _SAID.sub("Fri 08 May 2026, 09:30", text)
        text = _SEAL.sub("0123456789ab", text)
        text = _CLIENTS_ID.sub(lambda found: f"{found[1]}{found[2]}0123456789abcdef", text)
        return _SECRET.sub("whsec_0123456789abcdef", text)

    def _id(self, found: str) -> str:
        number = len(self._ids) + 1
        return self._ids.setdefault(found, f"6a1c5e0e-3a52-4d0e-9c0f-0b6f0f4f{number:04x}")


def play_all(client: httpx2.Client) -> Recording:
    """Call every operation of the schema.

    Args:
        client: Of a Loci with an empty palace, with a key for everything.
    """
    recording = Recording(client)
    for part in (_memory, _proxy, _mem0, _places, _record, _side_memories, _webhooks, _ends):
        part(recording.call)
    return recording


def _memory(call: Call) -> None:
    call("add_turns")
    for session, text in SPOKEN.items():
        said = [{"role": "user", "content": text}]
        turn = {"session_id": session, "user_id": "ada", "messages": said, "timestamp": MOMENT}
        call("add_turns", turn)
    call("file_conversation")
    call("recall")
    call("search")
    known = call("list_user_memories", user_id="ada")["memories"]
    # Its words are a turn's, and stay: that is said in an answer with a body.
    lisbon = next(each["memory"] for each in known if each["value"] == "Lisbon")
    call("delete_memory", memory_id=lisbon)


def _mem0(call: Call) -> None:
    added = call("add_memories")["results"][0]
    memory = added["id"]
    call("update_memory", memory_id=memory)
    call("get_memory", memory_id=memory)
    call("get_memory_history", memory_id=memory)
    call("list_memories", query=OF_ADA)
    call("search_memories")
    call("search_memories_by_url", query=f"{OF_ADA}&query=What+can+she+not+eat?")
    call("list_entities", query=OF_ADA)
    call("list_entities_in_scope")
    call("list_relations", query=OF_ADA, name="Nora")
    call("get_timeline", query=OF_ADA, name="Nora")
    call("delete_memory", memory_id=memory)


def _places(call: Call) -> None:
    drawers = call("list_drawers", query=OF_ADA)["results"]
    by_text = {each["text"]: each for each in drawers}
    _, kitchen, harbour, dogs = (by_text[text] for text in SPOKEN.values())
    # A wing of its own, which goes in the end, while the other conversations stay.
    call("move_room", {"wing_name": "Family"}, OF_ADA, uuid=kitchen["room"])
    kitchen = call("get_drawer", query=OF_ADA, uuid=kitchen["id"])
    call("list_wings", query=OF_ADA)
    wing = kitchen["wing"]
    call("get_wing", query=OF_ADA, uuid=wing)
    call("update_wing", query=OF_ADA, uuid=wing)
    call("list_rooms", query=OF_ADA, uuid=wing)
    call("get_room", query=OF_ADA, uuid=kitchen["room"])
    closets = call("list_closets", query=OF_ADA, uuid=kitchen["room"])["results"]
    call("get_closet", query=OF_ADA, uuid=closets[0]["id"])
    call("list_room_drawers", query=OF_ADA, uuid=kitchen["room"])
    call("get_drawer", query=OF_ADA, uuid=kitchen["id"])
    call("get_drawer_by_pointer", query=f"{OF_ADA}&pointer={kitchen['pointer']}")
    call("move_room", query=OF_ADA, uuid=harbour["room"])
    call("move_drawers", {"drawers": [dogs["id"]], "wing_name": "Harbour"}, OF_ADA)
    _trash(call, kitchen, harbour["id"], dogs["id"])


def _trash(call: Call, kitchen: Json, harbour: str, dogs: str) -> None:
    call("trash_drawers", {"drawers": [dogs]}, OF_ADA)
    call("list_trash", query=OF_ADA)
    call("get_trashed_drawer", query=OF_ADA, uuid=dogs)
    call("restore_drawers", {"drawers": [dogs]}, OF_ADA)
    call("trash_drawer", query=OF_ADA, uuid=dogs)
    call("purge_trashed_drawer", query=OF_ADA, uuid=dogs)
    closet = call("get_drawer", query=OF_ADA, uuid=harbour)["closet"]
    call("trash_closet", query=OF_ADA, uuid=closet)
    call("restore_drawers", {"drawers": [harbour]}, OF_ADA)
    kept = call("get_drawer", query=OF_ADA, uuid=harbour)
    call("trash_room", query=OF_ADA, uuid=kept["room"])
    call("restore_drawers", {"drawers": [harbour]}, OF_ADA)
    call("merge_wing", {"into": kitchen["wing"]}, OF_ADA, uuid=kept["wing"])
    call("trash_wing", query=OF_ADA, uuid=kitchen["wing"])
    call("empty_trash", {}, OF_ADA)


def _record(call: Call) -> None:
    # One hit that is far above the floor: processors differ in whether a hit near it is one.
    call("search", {"query": "Which lens did Nora recommend?", "user_id": "ada", "limit": 1})
    traces = call("list_recalls", query=OF_ADA)["results"]
    call("get_recall_trace", query=OF_ADA, uuid=traces[0]["id"])
    call("list_activity", query=OF_ADA)
    call("get_usage")
    call("update_settings")
    call("get_settings")
    call("list_palaces")
    call("export_palace", query=OF_ADA)


def _side_memories(call: Call) -> None:
    call("set_working_memory", conversation_id="monday")
    call("get_working_memory", conversation_id="monday")
    call("delete_working_memory", conversation_id="monday")
    entries = {"kind": "patrol", "name": "desk"}
    call("put_entry", key="tripod", **entries)
    call("get_entry", key="tripod", **entries)
    call("list_entries", **entries)
    call("search_entries", **entries)
    call("get_inventory", **entries)
    call("delete_entry", key="tripod", **entries)
    call("store_episode")
    call("search_episodes")
    call("list_episodes", conversation_id="monday")
    for name in ("mark_item", "check_item", "get_ledger", "evict_item"):
        call(name, conversation_id="monday")


def _webhooks(call: Call) -> None:
    webhook = call("create_webhook")["id"]
    call("test_webhook", uuid=webhook)
    call("list_webhook_deliveries", uuid=webhook)
    call("replace_webhook_secret", uuid=webhook)
    call("update_webhook", uuid=webhook)
    call("get_webhook", uuid=webhook)
    call("list_webhooks")
    call("delete_webhook", uuid=webhook)


def _proxy(call: Call) -> None:
    for name in ("create_chat_completion", "create_response", "create_embeddings", "list_models"):
        call(name)
    call("get_model", name="loci")


def _ends(call: Call) -> None:
    call("delete_memories", query=OF_ADA)
    call("delete_session", session_id="monday", query=OF_ADA)
    call("delete_user", user_id="ada")
    call("reset")

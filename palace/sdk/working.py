"""Working memory for programs: entries under paths, and a conversation's fields.

What is read of somebody who has no palace is nothing; what is written makes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isolation.reach import Reach
from palace.sdk import arguments
from palace.sdk.calls import a_call
from palace.sdk.results import EntryItem
from palace.sdk.scope import CallScope
from palace.working.entries import Entry, delete_entry, entries_under, get_entry, set_entry
from palace.working.fields import (
    ENTITIES,
    SCRATCHPAD,
    delete_fields,
    get_field,
    get_fields,
    put_fields,
)
from palace.working.inventory import inventory
from palace.working.names import Namespace, name_of
from palace.working.search import LIMIT, search_entries

# Within the classes `list` is a call.
EntryItems = list[EntryItem]


class WorkingMemory:
    """The entries of a palace, as one namespace writes and reads them; made by `Memory.working`."""

    def __init__(
        self, owner_id: int, namespace: str, user_id: str | None, bound_to: str | None = None
    ) -> None:
        """
        Raises:
            BadInput: it is no namespace; ScopeError: nobody can be called so; WrongPalace.
        """
        self._owner_id, self._scope = owner_id, scope_of(user_id, bound_to)
        self.reach = Reach(owner=owner_id, subject=self._scope.user)
        self.namespace = Namespace.read(namespace)

    @a_call
    def set(
        self,
        key: str,
        value: str,
        *,
        ttl_seconds: float | None = None,
        category: str = "",
        tags: Iterable[str] = (),
    ) -> EntryItem:
        """Keep a text under a key of this namespace, in place of what was there.

        Args:
            ttl_seconds: How long it is kept after each use; five minutes, unless set otherwise.

        Raises:
            BadInput, TooMuch: something cannot be kept; NotItsOwn: the path leads elsewhere.
            NamespaceFull: it would be one too many; WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace_made(self._owner_id)
        entry = set_entry(
            palace,
            self.namespace,
            key,
            value,
            ttl_seconds=ttl_seconds,
            category=category,
            tags=tags,
        )
        return _item(entry)

    @a_call
    def get(self, key: str) -> EntryItem | None:
        """What is kept under a key of this namespace, or under a full path; its time begins anew.

        Raises:
            BadInput: it is no key; WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        entry = get_entry(palace, self.namespace, key) if palace else None
        return _item(entry) if entry else None

    @a_call
    def list(self, prefix: str | None = None) -> EntryItems:
        """The entries of this namespace, by path; or those whose path begins so, "" for all.

        Raises:
            BadInput: no path begins so; WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        entries = entries_under(palace, self._prefix(prefix)) if palace else []
        return [_item(entry) for entry in entries]

    @a_call
    def search(
        self,
        query: str = "",
        *,
        category: str = "",
        tags: Iterable[str] = (),
        prefix: str | None = None,
        limit: int = LIMIT,
    ) -> EntryItems:
        """The entries that have one of the words, best first; without words, the newest first.

        Args:
            category: It, or one below it.
            tags: An entry has all of them.
            prefix: As `list`.

        Raises:
            BadInput: an argument cannot be used; WorkingMemoryAway: Redis does not answer.
        """
        palace, limit = self._scope.palace(self._owner_id), arguments.limit_of(limit)
        if palace is None:
            return []
        found = search_entries(
            palace,
            query=query,
            category=category,
            tags=tags,
            prefix=self._prefix(prefix),
            limit=limit,
        )
        return [{**_item(one.entry), "score": one.score} for one in found]

    @a_call
    def delete(self, key: str) -> bool:
        """Whether there was such an entry in this namespace.

        Raises:
            BadInput: it is no key; NotItsOwn: the path leads elsewhere.
            WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        return delete_entry(palace, self.namespace, key) if palace else False

    @a_call
    def inventory(self) -> str:
        """What a model is told: a line for each entry, without what it says.

        Raises:
            WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        return inventory(palace, self.namespace) if palace else ""

    def _prefix(self, prefix: str | None) -> str:
        return str(self.namespace) if prefix is None else prefix


class ConversationMemory:
    """What is noted of one conversation, by field; made by `Memory.conversation`."""

    def __init__(
        self, owner_id: int, conversation_id: str, user_id: str | None, bound_to: str | None = None
    ) -> None:
        """
        Raises:
            BadInput: it is no conversation's id; ScopeError: nobody can be called so; WrongPalace.
        """
        self._owner_id, self._scope = owner_id, scope_of(user_id, bound_to)
        self.reach = Reach(owner=owner_id, subject=self._scope.user)
        self.conversation_id = name_of("A conversation", conversation_id)

    @a_call
    def get(self) -> dict[str, Any]:
        """All fields; none where nothing is noted. Their time begins anew.

        Raises:
            WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        return get_fields(palace, self.conversation_id) if palace else {}

    @a_call
    def get_field(self, name: str, default: Any = None) -> Any:
        """One field, or the default where there is none of this name. All begin their time anew.

        Raises:
            BadInput: it is no field's name; WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        return get_field(palace, self.conversation_id, name, default) if palace else default

    @a_call
    def put(self, fields: Mapping[str, Any], *, ttl_seconds: float | None = None) -> None:
        """Set these fields and leave the others; the time of all of them begins anew.

        Args:
            ttl_seconds: How long they all are kept after each use from now on; a day, unless set
                otherwise.

        Raises:
            BadInput: an argument cannot be used; WorkingMemoryAway: Redis does not answer.
            TooMuch: all fields together would be larger than 64 KB; nothing is put.
        """
        palace = self._scope.palace_made(self._owner_id)
        put_fields(palace, self.conversation_id, fields, ttl_seconds=ttl_seconds)

    @a_call
    def delete(self, fields: Iterable[str] | None = None) -> int:
        """Delete these fields, or all; returns how many there were.

        Raises:
            BadInput: it is no field's name; WorkingMemoryAway: Redis does not answer.
        """
        palace = self._scope.palace(self._owner_id)
        return delete_fields(palace, self.conversation_id, fields) if palace else 0

    def get_scratchpad(self) -> str:
        """The field `scratchpad`; empty where there is none."""
        return str(self.get_field(SCRATCHPAD, ""))

    def set_scratchpad(self, text: str) -> None:
        """Put the field `scratchpad`."""
        self.put({SCRATCHPAD: text})

    def get_entities(self) -> list[Any]:
        """The field `entities`; empty where there is none."""
        return list(self.get_field(ENTITIES, ()))

    def set_entities(self, entities: list[Any]) -> None:
        """Put the field `entities`."""
        self.put({ENTITIES: entities})


def scope_of(user_id: str | None, bound_to: str | None = None) -> CallScope:
    """Whose palace: the owner's own, unless somebody is named, or it is bound to another.

    Raises:
        ScopeError: nobody can be called so; WrongPalace: it is bound to another.
    """
    if user_id is None:
        return CallScope(bound_to or "")
    return CallScope.read(user_id, None, None, bound_to=bound_to)


def _item(entry: Entry) -> EntryItem:
    return {
        "key": str(entry.path),
        "value": entry.value,
        "stored_at": entry.stored_at.isoformat(),
        "expires_at": entry.expires_at.isoformat(),
        "category": entry.category,
        "tags": [*entry.tags],
    }

"""The SDK's working memory: entries under paths, and a conversation's fields.

Reads return nothing for a person without a palace; writes create one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isolation.row_access import Access
from palace.sdk import arguments
from palace.sdk.arguments import CallScope
from palace.sdk.errors import a_call
from palace.sdk.results import EntryItem
from palace.working import (
    DEFAULT_LIMIT,
    ENTITIES,
    SCRATCHPAD,
    Entry,
    Namespace,
    delete_entry,
    delete_fields,
    entries_under,
    get_entry,
    get_field,
    get_fields,
    inventory,
    name_of,
    put_fields,
    search_entries,
    set_entry,
)

# Within the classes `list` is a method.
EntryItems = list[EntryItem]


class WorkingMemory:
    """A namespace's view of a palace's entries; returned by `Memory.working`."""

    def __init__(
        self, owner_id: int, namespace: str, user_id: str | None, bound_to: str | None = None
    ) -> None:
        """
        Raises:
            BadInput: the namespace is invalid; ScopeError: the user_id is invalid; WrongPalace.
        """
        self._owner_id, self._scope = owner_id, scope_of(user_id, bound_to)
        self.row_access = Access(owner=owner_id, subject=self._scope.user)
        self.namespace = Namespace.read(namespace)

    def __repr__(self) -> str:
        user = self._scope.user or None
        return f"WorkingMemory({str(self.namespace)!r}, user_id={user!r})"

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
        """Store a text under a key of this namespace, replacing any previous one.

        Args:
            ttl_seconds: Lifetime after each use; by default five minutes.

        Raises:
            BadInput, TooMuch: an argument is invalid; NotItsOwn: the path is in another namespace.
            NamespaceFull: the namespace is full; WorkingMemoryAway: Redis does not respond.
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
        """Get the entry under a key of this namespace or a full path; this renews its expiry.

        Raises:
            BadInput: the key is invalid; WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        entry = get_entry(palace, self.namespace, key) if palace else None
        return _item(entry) if entry else None

    @a_call
    def list(self, prefix: str | None = None) -> EntryItems:
        """List the entries of this namespace by path, or those with a path prefix, "" for all.

        Raises:
            BadInput: the prefix is invalid; WorkingMemoryAway: Redis does not respond.
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
        limit: int = DEFAULT_LIMIT,
    ) -> EntryItems:
        """Search entries that contain any of the words, best first; without words, newest first.

        Args:
            category: This category or one below it.
            tags: Entries must have all of them.
            prefix: As `list`.

        Raises:
            BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
        """
        query, limit = arguments.query_of(query), arguments.limit_of(limit)
        palace = self._scope.palace(self._owner_id)
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
        """Delete an entry of this namespace; returns whether it existed.

        Raises:
            BadInput: the key is invalid; NotItsOwn: the path is in another namespace.
            WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        return delete_entry(palace, self.namespace, key) if palace else False

    @a_call
    def inventory(self) -> str:
        """An inventory for a model: a line for each entry, without its value.

        Raises:
            WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        return inventory(palace, self.namespace) if palace else ""

    def _prefix(self, prefix: str | None) -> str:
        return str(self.namespace) if prefix is None else prefix


class ConversationMemory:
    """A conversation's fields; returned by `Memory.conversation`."""

    def __init__(
        self, owner_id: int, conversation_id: str, user_id: str | None, bound_to: str | None = None
    ) -> None:
        """
        Raises:
            BadInput: the id is invalid; ScopeError: the user_id is invalid; WrongPalace.
        """
        self._owner_id, self._scope = owner_id, scope_of(user_id, bound_to)
        self.row_access = Access(owner=owner_id, subject=self._scope.user)
        self.conversation_id = name_of("A conversation", conversation_id)

    def __repr__(self) -> str:
        user = self._scope.user or None
        return f"ConversationMemory({self.conversation_id!r}, user_id={user!r})"

    @a_call
    def get(self) -> dict[str, Any]:
        """All fields; this renews their expiry.

        Raises:
            WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        return get_fields(palace, self.conversation_id) if palace else {}

    @a_call
    def get_field(self, name: str, default: Any = None) -> Any:
        """One field, or the default if missing; this renews the expiry of all.

        Raises:
            BadInput: the name is invalid; WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        return get_field(palace, self.conversation_id, name, default) if palace else default

    @a_call
    def put(self, fields: Mapping[str, Any], *, ttl_seconds: float | None = None) -> None:
        """Set these fields and leave the others; this renews the expiry of all.

        Args:
            ttl_seconds: Lifetime of all fields after each use from now on; by default a day.

        Raises:
            BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
            TooMuch: all fields together would be larger than 64 KB; nothing is stored.
        """
        palace = self._scope.palace_made(self._owner_id)
        put_fields(palace, self.conversation_id, fields, ttl_seconds=ttl_seconds)

    @a_call
    def delete(self, fields: Iterable[str] | None = None) -> int:
        """Delete these fields, or all; returns their number.

        Raises:
            BadInput: the name is invalid; WorkingMemoryAway: Redis does not respond.
        """
        palace = self._scope.palace(self._owner_id)
        return delete_fields(palace, self.conversation_id, fields) if palace else 0

    def get_scratchpad(self) -> str:
        """The field `scratchpad`; empty if missing."""
        return str(self.get_field(SCRATCHPAD, ""))

    def set_scratchpad(self, text: str) -> None:
        """Set the field `scratchpad`."""
        self.put({SCRATCHPAD: text})

    def get_entities(self) -> list[Any]:
        """The field `entities`; empty if missing."""
        return list(self.get_field(ENTITIES, ()))

    def set_entities(self, entities: list[Any]) -> None:
        """Set the field `entities`."""
        self.put({ENTITIES: entities})


def scope_of(user_id: str | None, bound_to: str | None = None) -> CallScope:
    """The scope's palace: the named user's, else the bound one, else the owner's.

    Raises:
        ScopeError: the user_id is invalid; WrongPalace: it is not the bound one.
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

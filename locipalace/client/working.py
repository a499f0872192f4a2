"""Descriptions of the calls about working memory: entries under paths, a conversation's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from locipalace.client import calls
from locipalace.client.calls import Call, an_object, at
from locipalace.client.errors import BadInput
from locipalace.client.results import EntryItem

LIMIT = 20
SCRATCHPAD, ENTITIES = "scratchpad", "entities"

# Within the classes `list` is a method.
EntryItems = list[EntryItem]


class EntryCalls:
    """A namespace in one user's palace; None for the key's own."""

    def __init__(self, namespace: str, user_id: str | None) -> None:
        """
        Raises:
            BadInput: the namespace is invalid; ScopeError: the user_id is invalid.
        """
        self.namespace = namespace
        self._root = _root(namespace)
        self._scope = calls.scope(user_id=user_id)

    def __str__(self) -> str:
        return f"{self.namespace!r}, user_id={self._scope.get('user_id')!r}"

    def set(
        self,
        key: str,
        value: str,
        *,
        ttl_seconds: float | None = None,
        category: str = "",
        tags: Iterable[str] = (),
    ) -> Call[EntryItem]:
        """Store a text under a key of this namespace, replacing any previous one.

        Args:
            ttl_seconds: Lifetime after each use; by default the server's.

        Raises:
            BadInput, TooMuch: an argument is invalid; NotItsOwn: the path is in another namespace.
            NamespaceFull: the namespace is full; WorkingMemoryAway: Redis does not respond.
        """
        body = calls.given(
            value=value,
            ttl_seconds=ttl_seconds,
            category=category,
            tags=calls.listed("tags", tags),
        )
        return Call("PUT", self._entry(key), an_object, query=self._scope, body=body)

    def get(self, key: str) -> Call[EntryItem | None]:
        """Get the entry under a key of this namespace or a full path; this renews its expiry.

        Raises:
            BadInput: the key is invalid; WorkingMemoryAway: Redis does not respond.
        """
        path = self._entry(key)
        return Call("GET", path, an_object, query=self._scope, absent=lambda: None)

    def list(self, prefix: str | None = None) -> Call[EntryItems]:
        """List the entries of this namespace by path, or those with a path prefix, "" for all.

        Raises:
            BadInput: the prefix is invalid; WorkingMemoryAway: Redis does not respond.
        """
        query = calls.query_of(prefix=prefix, **self._scope)
        return Call("GET", f"{self._root}/entries", at("entries"), query=query)

    def search(
        self,
        query: str = "",
        *,
        category: str = "",
        tags: Iterable[str] = (),
        prefix: str | None = None,
        limit: int = LIMIT,
    ) -> Call[EntryItems]:
        """Search entries that contain any of the words, best first; without words, newest first.

        Args:
            category: This category or one below it.
            tags: Entries must have all of them.
            prefix: As `list`.

        Raises:
            BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
        """
        body = calls.given(
            query=query,
            category=category,
            tags=calls.listed("tags", tags),
            prefix=prefix,
            limit=limit,
        )
        path = f"{self._root}/search"
        return Call("POST", path, at("entries"), query=self._scope, body=body)

    def delete(self, key: str) -> Call[bool]:
        """Delete an entry of this namespace; returns whether it existed.

        Raises:
            BadInput: the key is invalid; NotItsOwn: the path is in another namespace.
            WorkingMemoryAway: Redis does not respond.
        """
        return Call("DELETE", self._entry(key), at("deleted"), query=self._scope)

    def inventory(self) -> Call[str]:
        """An inventory for a model: a line for each entry, without its value.

        Raises:
            WorkingMemoryAway: Redis does not respond.
        """
        return Call("GET", f"{self._root}/inventory", at("inventory"), query=self._scope)

    def _entry(self, key: object) -> str:
        return f"{self._root}/entries/{calls.path('A key', key)}"


def _root(namespace: object) -> str:
    parts = namespace.split("/") if isinstance(namespace, str) else []
    if len(parts) != 2:
        raise BadInput(f"A namespace is such as session/<id>, not {namespace!r:.60}.")
    kind, name = (calls.part("A namespace's part", part) for part in parts)
    return f"/namespaces/{kind}/{name}"


class ConversationCalls:
    """A conversation in one user's palace; None for the key's own."""

    def __init__(self, conversation_id: str, user_id: str | None) -> None:
        """
        Raises:
            BadInput: the id is invalid; ScopeError: the user_id is invalid.
        """
        self.conversation_id = conversation_id
        self._path = f"/working-memory/{calls.path('A conversation', conversation_id)}"
        self._scope = calls.scope(user_id=user_id)

    def __str__(self) -> str:
        return f"{self.conversation_id!r}, user_id={self._scope.get('user_id')!r}"

    def get(self) -> Call[dict[str, Any]]:
        """All fields; this renews their expiry.

        Raises:
            WorkingMemoryAway: Redis does not respond.
        """
        return Call("GET", self._path, at("fields"), query=self._scope)

    def get_field(self, name: str, default: Any = None) -> Call[Any]:
        """One field, or the default if missing; this renews the expiry of all.

        Raises:
            BadInput: the name is invalid; WorkingMemoryAway: Redis does not respond.
        """
        calls.part("A field", name)

        def read(answer: Any) -> Any:
            return at("fields")(answer).get(name, default)

        return Call("GET", self._path, read, query=self._scope)

    def put(self, fields: Mapping[str, Any], *, ttl_seconds: float | None = None) -> Call[None]:
        """Set these fields and leave the others; this renews the expiry of all.

        Args:
            ttl_seconds: Lifetime of all fields after each use from now on; by default the server's.

        Raises:
            BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
            TooMuch: all fields together would be larger than 64 KB; nothing is stored.
        """
        body = calls.given(fields=fields, ttl_seconds=ttl_seconds)
        return Call("PUT", self._path, _no_matter, query=self._scope, body=body)

    def delete(self, fields: Iterable[str] | None = None) -> Call[int]:
        """Delete these fields, or all; returns their number.

        Raises:
            BadInput: the name is invalid; WorkingMemoryAway: Redis does not respond.
        """
        body = None if fields is None else {"fields": calls.listed("fields", fields)}
        return Call("DELETE", self._path, at("deleted"), query=self._scope, body=body)

    def get_scratchpad(self) -> Call[str]:
        """The field `scratchpad`; empty if missing."""
        return self.get_field(SCRATCHPAD, "")

    def set_scratchpad(self, text: str) -> Call[None]:
        """Set the field `scratchpad`."""
        return self.put({SCRATCHPAD: text})

    def get_entities(self) -> Call[list[Any]]:
        """The field `entities`; empty if missing."""
        return self.get_field(ENTITIES, [])

    def set_entities(self, entities: list[Any]) -> Call[None]:
        """Set the field `entities`."""
        return self.put({ENTITIES: entities})


def _no_matter(_answer: object) -> None:
    """Ignore the response: the new state is read by a call of its own."""

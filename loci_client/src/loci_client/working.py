"""Descriptions of the calls about working memory: entries under paths, a conversation's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loci_client import values
from loci_client.calls import Call, an_object, at
from loci_client.errors import BadInput
from loci_client.results import EntryItem

LIMIT = 20
SCRATCHPAD, ENTITIES = "scratchpad", "entities"

# Within the classes `list` is a call.
EntryItems = list[EntryItem]


class EntryCalls:
    """Of one namespace, in the palace of one user; None: the key's own."""

    def __init__(self, namespace: str, user_id: str | None) -> None:
        """
        Raises:
            BadInput: it is no namespace; ScopeError: nobody can be called so.
        """
        self.namespace = namespace
        self._root = _root(namespace)
        self._scope = values.scope(user_id=user_id)

    def set(
        self,
        key: str,
        value: str,
        *,
        ttl_seconds: float | None = None,
        category: str = "",
        tags: Iterable[str] = (),
    ) -> Call[EntryItem]:
        """Keep a text under a key of this namespace, in place of what was there.

        Args:
            ttl_seconds: How long it is kept after each use; as the server has it, unless given.

        Raises:
            BadInput, TooMuch: something cannot be kept; NotItsOwn: the path leads elsewhere.
            NamespaceFull: it would be one too many; WorkingMemoryAway: Redis does not answer.
        """
        body = values.given(
            value=value,
            ttl_seconds=ttl_seconds,
            category=category,
            tags=values.listed("tags", tags),
        )
        return Call("PUT", self._entry(key), an_object, query=self._scope, body=body)

    def get(self, key: str) -> Call[EntryItem | None]:
        """What is kept under a key of this namespace, or under a full path; its time begins anew.

        Raises:
            BadInput: it is no key; WorkingMemoryAway: Redis does not answer.
        """
        path = self._entry(key)
        return Call("GET", path, an_object, query=self._scope, absent=lambda: None)

    def list(self, prefix: str | None = None) -> Call[EntryItems]:
        """The entries of this namespace, by path; or those whose path begins so, "" for all.

        Raises:
            BadInput: no path begins so; WorkingMemoryAway: Redis does not answer.
        """
        query = values.query_of(prefix=prefix, **self._scope)
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
        """The entries that have one of the words, best first; without words, the newest first.

        Args:
            category: It, or one below it.
            tags: An entry has all of them.
            prefix: As `list`.

        Raises:
            BadInput: an argument cannot be used; WorkingMemoryAway: Redis does not answer.
        """
        body = values.given(
            query=query,
            category=category,
            tags=values.listed("tags", tags),
            prefix=prefix,
            limit=limit,
        )
        path = f"{self._root}/search"
        return Call("POST", path, at("entries"), query=self._scope, body=body)

    def delete(self, key: str) -> Call[bool]:
        """Whether there was such an entry in this namespace.

        Raises:
            BadInput: it is no key; NotItsOwn: the path leads elsewhere.
            WorkingMemoryAway: Redis does not answer.
        """
        return Call("DELETE", self._entry(key), at("deleted"), query=self._scope)

    def inventory(self) -> Call[str]:
        """What a model is told: a line for each entry, without what it says.

        Raises:
            WorkingMemoryAway: Redis does not answer.
        """
        return Call("GET", f"{self._root}/inventory", at("inventory"), query=self._scope)

    def _entry(self, key: object) -> str:
        return f"{self._root}/entries/{values.path('A key', key)}"


def _root(namespace: object) -> str:
    parts = namespace.split("/") if isinstance(namespace, str) else []
    if len(parts) != 2:
        raise BadInput(f"A namespace is such as session/<id>, not {namespace!r:.60}.")
    kind, name = (values.part("A namespace's part", part) for part in parts)
    return f"/namespaces/{kind}/{name}"


class ConversationCalls:
    """Of one conversation, in the palace of one user; None: the key's own."""

    def __init__(self, conversation_id: str, user_id: str | None) -> None:
        """
        Raises:
            BadInput: it is no conversation's id; ScopeError: nobody can be called so.
        """
        self.conversation_id = conversation_id
        self._path = f"/working-memory/{values.path('A conversation', conversation_id)}"
        self._scope = values.scope(user_id=user_id)

    def get(self) -> Call[dict[str, Any]]:
        """All fields; none where nothing is noted. Their time begins anew.

        Raises:
            WorkingMemoryAway: Redis does not answer.
        """
        return Call("GET", self._path, at("fields"), query=self._scope)

    def get_field(self, name: str, default: Any = None) -> Call[Any]:
        """One field, or the default where there is none of this name. All begin their time anew.

        Raises:
            BadInput: it is no field's name; WorkingMemoryAway: Redis does not answer.
        """
        values.part("A field", name)

        def read(answer: Any) -> Any:
            return at("fields")(answer).get(name, default)

        return Call("GET", self._path, read, query=self._scope)

    def put(self, fields: Mapping[str, Any], *, ttl_seconds: float | None = None) -> Call[None]:
        """Set these fields and leave the others; the time of all of them begins anew.

        Args:
            ttl_seconds: How long they all are kept after each use from now on; as the server has
                it, unless given.

        Raises:
            BadInput: an argument cannot be used; WorkingMemoryAway: Redis does not answer.
            TooMuch: all fields together would be larger than 64 KB; nothing is put.
        """
        body = values.given(fields=fields, ttl_seconds=ttl_seconds)
        return Call("PUT", self._path, _no_matter, query=self._scope, body=body)

    def delete(self, fields: Iterable[str] | None = None) -> Call[int]:
        """Delete these fields, or all; returns how many there were.

        Raises:
            BadInput: it is no field's name; WorkingMemoryAway: Redis does not answer.
        """
        body = None if fields is None else {"fields": values.listed("fields", fields)}
        return Call("DELETE", self._path, at("deleted"), query=self._scope, body=body)

    def get_scratchpad(self) -> Call[str]:
        """The field `scratchpad`; empty where there is none."""
        return self.get_field(SCRATCHPAD, "")

    def set_scratchpad(self, text: str) -> Call[None]:
        """Put the field `scratchpad`."""
        return self.put({SCRATCHPAD: text})

    def get_entities(self) -> Call[list[Any]]:
        """The field `entities`; empty where there is none."""
        return self.get_field(ENTITIES, [])

    def set_entities(self, entities: list[Any]) -> Call[None]:
        """Put the field `entities`."""
        return self.put({ENTITIES: entities})


def _no_matter(_answer: object) -> None:
    """What is held then is asked for by itself."""

"""The type check of an export's items."""

from __future__ import annotations

from typing import Any

from palace.errors import BadImport


def conversation_object(
    item: Any, key: str, kind: type[list[Any]] | type[dict[str, Any]], number: int, name: str
) -> dict[str, Any]:
    """`item`, if it is an object whose `key`, where it has one, is of this kind.

    A conversation without the key is an empty one; of another kind, it is from another program,
    and to import the rest as if nothing were amiss would lose it unseen.
    """
    if not isinstance(item, dict):
        raise BadImport(f"Conversation {number} of {name} is not an object; nothing was imported.")
    value = item.get(key)
    if value is not None and not isinstance(value, kind):
        raise BadImport(
            f"Conversation {number} of {name} is not as expected: "
            f'its "{key}" is no {"list" if kind is list else "object"}; nothing was imported.'
        )
    return item

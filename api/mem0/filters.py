"""Translate mem0's filters to those of the fact API, and take the scope out of them.

`{"user_id": "ada", "created_at": {"gte": "2024-01-01"}, "metadata": {"tag": "work"}}`, joined by
AND, OR and NOT. `*` stands for any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palace.errors import BadFilter

IDS = ("user_id", "agent_id", "run_id")
ANY = "*"
_CATEGORIES = "categories"
# The field of a memory by mem0's name; all others have the same name, or are keys of metadata.
_FIELDS = {_CATEGORIES: "category", "keywords": "memory"}


@dataclass(slots=True)
class Filtered:
    """
    Attributes:
        scope: The ids that hold for all results.
        conditions: Filters of the fact API, all of which must hold.
    """

    scope: dict[str, str] = field(default_factory=dict)
    conditions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def filters(self) -> dict[str, Any] | None:
        return {"AND": self.conditions} if self.conditions else None


def read_filters(params: Mapping[str, Any]) -> Filtered:
    """The scope and the conditions of a request.

    The ids stand beside the filters or within them, but not within OR or NOT: they name a palace.

    Raises:
        BadFilter: a filter is invalid.
    """
    found = Filtered()
    outside = {name: params[name] for name in (*IDS, "app_id") if params.get(name) is not None}
    _take(found, outside)
    given = params.get("filters")
    if given is not None:
        _take(found, given)
    listed = params.get(_CATEGORIES)
    if listed is not None:
        found.conditions.append(_condition(_CATEGORIES, "in", listed))
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if params.get(name) is not None:
            found.conditions.append(_condition("created_at", operator, params[name]))
    return found


def _take(found: Filtered, given: object) -> None:
    """Add a filter that must hold."""
    if not isinstance(given, Mapping):
        raise BadFilter("filters is an object, such as {“user_id”: “ada”}.")
    for name, value in given.items():
        if name == "AND":
            for part in _parts(name, value):
                _take(found, part)
        elif name in IDS:
            _take_id(found, name, value)
        else:
            found.conditions += _conditions(name, value)


def _take_id(found: Filtered, name: str, value: object) -> None:
    """
    Raises:
        BadFilter: it is no single id, or another one than given elsewhere.
    """
    if value == ANY and name != "user_id":
        return
    if not isinstance(value, str) or value == ANY or found.scope.get(name, value) != value:
        raise BadFilter(f"Name one {name}; several, or any, cannot be searched at once.")
    found.scope[name] = value


def _conditions(name: str, value: object) -> Iterator[dict[str, Any]]:
    """One filter, as filters of the fact API that must all hold."""
    if name in ("AND", "OR"):
        yield {name: [_all_of(part) for part in _parts(name, value)]}
    elif name == "NOT":
        parts = value if isinstance(value, list) else [value]
        yield {"NOT": _joined("OR", [_all_of(part) for part in _parts(name, parts)])}
    elif name in IDS:
        raise BadFilter(f"{name} names a palace or a part of it: write it outside of OR and NOT.")
    elif name == "metadata":
        for key, wanted in _object(name, value).items():
            yield from _compared(f"metadata.{key}", wanted)
    else:
        yield from _compared(name, value)


def _compared(name: str, value: object) -> Iterator[dict[str, Any]]:
    if value == ANY:
        yield {"NOT": {"field": _FIELDS.get(name, name), "operator": "eq", "value": None}}
    elif isinstance(value, Mapping):
        for operator, wanted in value.items():
            yield _condition(name, operator, wanted)
    elif isinstance(value, list):
        yield _condition(name, "in", value)
    else:
        yield _condition(name, "eq", value)


def _condition(name: str, operator: str, value: object) -> dict[str, Any]:
    """Of a memory's one category, to contain a whole category is to be it."""
    if name == _CATEGORIES and operator == "contains":
        operator = "eq"
    return {"field": _FIELDS.get(name, name), "operator": operator, "value": value}


def _all_of(part: object) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for name, value in _object("a filter", part).items():
        found += _conditions(name, value)
    return _joined("AND", found)


def _joined(join: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        raise BadFilter("A filter is empty; leave it out, or write a condition.")
    return parts[0] if len(parts) == 1 else {join: list(parts)}


def _parts(name: str, value: object) -> Iterable[object]:
    if not isinstance(value, list) or not value:
        raise BadFilter(f"{name} takes a list of at least one filter.")
    return value


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadFilter(f"{name} is an object, with a value for each name.")
    return value

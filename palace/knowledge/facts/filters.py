"""Translate filters of the fact API to database conditions.

A filter is `{"field": …, "operator": …, "value": …}`, or `{"AND": […]}`, `{"OR": […]}`,
`{"NOT": …}` of filters. Each condition holds or does not: what has no value is equal to nothing,
so `ne` and NOT hold for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    DateTimeField,
    F,
    Func,
    JSONField,
    Min,
    OuterRef,
    Q,
    Subquery,
    TextField,
    Value,
    When,
    lookups,
)
from django.db.models.expressions import Combinable
from django.db.models.fields.json import DataContains
from django.db.models.functions import MD5, Cast, Coalesce, Lower

from language.errors import BadFilter
from palace.knowledge.facts import filter_values as values
from palace.knowledge.facts.filter_values import as_json, quoted, read_moment
from palace.models import Fact, OuterPalace

__all__ = ["as_json", "condition_of", "quoted", "read_moment"]

_ORDER: Mapping[str, type[lookups.Lookup[Any]]] = {
    "gt": lookups.GreaterThan,
    "gte": lookups.GreaterThanOrEqual,
    "lt": lookups.LessThan,
    "lte": lookups.LessThanOrEqual,
}
_WITHIN = ("contains", "icontains")
OPERATORS = ("eq", "ne", *_ORDER, "in", "nin", *_WITHIN)
MOST_CONDITIONS = 100
MOST_DEPTH = 8

# Columns by the names that callers use. Any other name is a key of the caller's own metadata, and
# so is what stands behind "metadata.", for keys that are called like a field.
_TEXTS = {
    "memory": "text",
    "text": "text",
    "type": "type",
    "subject": "subject__name",
    "predicate": "predicate",
    "object": "object",
    "aspect": "aspect",
    "stance": "stance",
    "category": "category",
    "user_id": "palace__subject",
    "agent_id": "agent",
    "run_id": "run",
}
_TIMES = ("created_at", "updated_at", "valid_from", "valid_to")
_IDS = ("id", "hash")
FIELDS = (*_IDS, *_TEXTS, *_TIMES, "confidence", "tags")
# Callers often give their memories a category. Where they did, theirs counts and not ours.
_CATEGORY = "category"
OF_METADATA = "metadata."

_JOINS = {"AND": and_, "OR": or_}
_WRITE = (
    "Write an object with field, operator and value, or one with AND (a list of filters), OR (a "
    "list) or NOT (a filter) alone."
)


def condition_of(filters: object) -> Q:
    """The filter as a condition on facts.

    Raises:
        BadFilter: it cannot be understood, or is too large; says where, and what is allowed.
    """
    return _Reading().read(filters, depth=1)


class _Reading:
    """One filter on its way into a condition; counts what it holds."""

    def __init__(self) -> None:
        self._conditions = 0

    def read(self, part: object, *, depth: int) -> Q:
        if depth > MOST_DEPTH:
            raise BadFilter(f"The filter is more than {MOST_DEPTH} levels deep; make it flatter.")
        if not isinstance(part, Mapping):
            raise BadFilter(f"{quoted(part)} is no filter. {_WRITE}")
        [only] = part if len(part) == 1 else [None]
        if only in _JOINS:
            return self._joined(str(only), part[only], depth)
        if only == "NOT":
            return ~self.read(part[only], depth=depth + 1)
        return self._condition(part)

    def _joined(self, join: str, parts: object, depth: int) -> Q:
        if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
            raise BadFilter(f"{join} takes a list of at least one filter, not {quoted(parts)}.")
        return reduce(_JOINS[join], [self.read(one, depth=depth + 1) for one in parts])

    def _condition(self, part: Mapping[Any, Any]) -> Q:
        if set(part) != {"field", "operator", "value"}:
            raise BadFilter(f"{quoted(dict(part))} is no filter. {_WRITE}")
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise BadFilter(f"The filter has more than {MOST_CONDITIONS} conditions; use fewer.")
        field, operator = part["field"], part["operator"]
        if not isinstance(operator, str) or operator not in OPERATORS:
            raise BadFilter(
                f"{quoted(operator)} is no operator of filters; use one of {', '.join(OPERATORS)}."
            )
        values.check_field(field)
        return _compared(field, operator, part["value"])


def _compared(field: str, operator: str, value: object) -> Q:
    if operator == "ne":
        return ~_compared(field, "eq", value)
    if operator == "nin":
        return ~_compared(field, "in", value)
    if operator == "in":
        alternatives = [_compared(field, "eq", one) for one in values.several(field, value)]
        return reduce(or_, alternatives, _NOTHING)
    return _reader_of(field)(field, operator, value)


def _reader_of(field: str) -> Callable[[str, str, object], Q]:
    if field in _IDS:
        return _id
    if field == _CATEGORY:
        return _category
    if field in _TEXTS:
        return _text
    if field in _TIMES:
        return _time
    return {"confidence": _number, "tags": _tags}.get(field, _metadata)


_NOTHING = Q(pk__in=[])


def _category(field: str, operator: str, value: object) -> Q:
    built_in, given = _text(field, operator, value), Q(metadata__has_key=field)
    return given & _metadata(field, operator, value) | ~given & built_in


def _id(field: str, operator: str, value: object) -> Q:
    """The id of the memory, or the MD5 of its text in hexadecimal."""
    values.refuse(field, operator, (*_ORDER, *_WITHIN), "is an id")
    wanted = values.text(field, value)
    if field == "hash":
        return _holds(lookups.Exact(MD5(F("text")), Value(wanted.lower())))
    return Q(memory=values.identifier(field, wanted))


def _text(field: str, operator: str, value: object) -> Q:
    values.refuse(field, operator, _ORDER, "is text")
    wanted = values.text(field, value, empty_for_none=operator == "eq")
    if field == "type" and operator == "eq":
        values.check_type(wanted)
    lookup = "exact" if operator == "eq" else operator
    return Q(**{f"{_TEXTS[field]}__{lookup}": wanted})


def _number(field: str, operator: str, value: object) -> Q:
    values.refuse(field, operator, _WITHIN, "is a number")
    lookup = "exact" if operator == "eq" else operator
    return Q(**{f"{field}__{lookup}": values.number(field, value)})


def _time(field: str, operator: str, value: object) -> Q:
    values.refuse(field, operator, _WITHIN, "is a time")
    if operator == "eq" and value is None:
        return Q(lookups.IsNull(_moment_of(field), True))  # noqa: FBT003 - Django's own.
    lookup = _ORDER.get(operator, lookups.Exact)
    return _holds(lookup(_moment_of(field), values.moment(field, value)))


def _moment_of(field: str) -> Combinable:
    """A memory was created with its first version, and updated with the one that is looked at."""
    if field != "created_at":
        return F("recorded_at" if field == "updated_at" else field)
    versions = Fact.objects.filter(palace=OuterPalace(), memory=OuterRef("memory"))
    first = versions.order_by().values("memory").annotate(first=Min("recorded_at"))
    return Subquery(first.values("first"))


def _tags(field: str, operator: str, value: object) -> Q:
    """`eq` and `contains` both ask whether it has the tag, `icontains` in upper or lower case."""
    values.refuse(field, operator, _ORDER, "is a list of words")
    word = values.text(field, value)
    if operator != "icontains":
        return Q(tags__contains=[word])
    as_json = Func(F("tags"), function="to_jsonb", output_field=JSONField())
    return _has_in_any_case(as_json, word)


def _metadata(field: str, operator: str, value: object) -> Q:
    """JSON as the caller gave it: `eq` goes by kind and value, so 1 is 1.0 and never "1"."""
    key = field.removeprefix(OF_METADATA)
    if operator in _WITHIN:
        return _metadata_within(field, key, operator, value)
    kept, kind = _stored_value(key), _kind(key)
    if operator == "eq":
        if value is None:
            return Q(Coalesce(lookups.Exact(kind, Value("null")), Value(True)))  # noqa: FBT003
        return _holds(lookups.Exact(kept, _json(values.scalar(field, value))))
    compare = _ORDER[operator]
    if values.is_number(value):
        return _is(kind, "number") & _holds(compare(kept, _json(value)))
    return _holds(compare(_kept_moment(key), values.moment(field, value)))


def _metadata_within(field: str, key: str, operator: str, value: object) -> Q:
    """Of text: whether it holds these words. Of a list: whether it has this element."""
    kept, kind = _stored_value(key), _kind(key)
    if not isinstance(value, str):
        wanted = [values.scalar(field, value)]
        return _is(kind, "array") & _holds(DataContains(kept, wanted))
    word = values.text(field, value)
    any_case = operator == "icontains"
    words = (lookups.IContains if any_case else lookups.Contains)(_kept_text(key), word)
    element = _has_in_any_case(kept, word) if any_case else _holds(DataContains(kept, [word]))
    return _is(kind, "string") & _holds(words) | _is(kind, "array") & element


def _stored_value(key: str) -> Func:
    return Func(F("metadata"), Value(key), function="jsonb_extract_path", output_field=JSONField())


def _kept_text(key: str) -> Func:
    return Func(
        F("metadata"), Value(key), function="jsonb_extract_path_text", output_field=TextField()
    )


def _kept_moment(key: str) -> Case:
    """The time that it is; null where it is none. Nothing else must come to be cast."""
    stored = _kept_text(key)
    valid = Func(
        stored, Value("timestamptz"), function="pg_input_is_valid", output_field=BooleanField()
    )
    is_time = _is(_kind(key), "string") & Q(lookups.Regex(stored, r"^\d{4}-\d\d-\d\d")) & Q(valid)
    return Case(When(is_time, then=Cast(stored, DateTimeField())), output_field=DateTimeField())


def _kind(key: str) -> Func:
    """string, number, boolean, null, array or object; SQL's null where there is no such key."""
    return Func(_stored_value(key), function="jsonb_typeof", output_field=TextField())


def _is(kind: Func, name: str) -> Q:
    return _holds(lookups.Exact(kind, Value(name)))


def _json(value: object) -> Value:
    return Value(value, output_field=JSONField())


def _has_in_any_case(listed: Combinable, word: str) -> Q:
    lowered = Cast(Lower(Cast(listed, TextField())), JSONField())
    return _holds(DataContains(lowered, [word.lower()]))


def _holds(lookup: lookups.Lookup[Any]) -> Q:
    """The condition, false where one side is missing: so its opposite is true there."""
    return Q(Coalesce(lookup, Value(False), output_field=BooleanField()))  # noqa: FBT003

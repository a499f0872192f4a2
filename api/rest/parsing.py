"""Requests read strictly: JSON (UTF-8, limited size and depth, only storable text), and the fields
that several endpoints share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from api.rest.problems import Problem
from language.errors import StorageFull
from language.storable import is_storable

MOST_BYTES = 8 << 20
MOST_LEVELS = 60

# A path into the body: the parent's path, and a name or index in it. None is the body itself.
Place = tuple["Place", str | int] | None


class StrictJSON(BaseParser):
    """Refuses anything that is not strict JSON, with a sentence that says where."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(MOST_BYTES + 1)
        check_whole(parser_context["request"] if parser_context else None, body)
        return read_json(body)


def check_whole(request: HttpRequest | Request | None, body: bytes) -> None:
    """Check that the body is as long as the request says; a full disk can cut it off.

    Raises:
        StorageFull: it is shorter.
    """
    declared = request.META.get("CONTENT_LENGTH", "") if request is not None else ""
    if declared.isdecimal() and len(body) < min(int(declared), MOST_BYTES):
        raise StorageFull


def read_json(body: bytes, what: str = "The body", *, most_bytes: int = MOST_BYTES) -> Any:
    """
    Args:
        what: What error sentences call it.

    Raises:
        Problem: 413, it is too large; 400, it is not JSON or cannot be stored.
    """
    if len(body) > most_bytes:
        most = most_bytes >> 20
        raise Problem(413, "too_large", f"{what} has up to {most} MB. Send less at once.")
    try:
        read = json.loads(body.decode(), parse_constant=_no_number, parse_int=_number)
    except UnicodeDecodeError as error:
        raise _bad(f"{what} is not UTF-8: byte {error.start} is invalid.") from None
    except RecursionError:
        raise _bad(f"{what} is nested deeper than {MOST_LEVELS} levels.") from None
    except ValueError as error:
        raise _bad(f"{what} is not JSON: {error}.") from None
    _check(read, None, 0)
    return read


def _bad(sentence: str) -> Problem:
    return Problem(400, "bad_json", sentence)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _number(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"the number {digits[:10]}… is too large")
    return int(digits)


def _check(value: Any, at: Place, level: int) -> None:
    if level > MOST_LEVELS:
        raise _bad(f"The body is nested deeper than {MOST_LEVELS} levels.")
    if isinstance(value, str):
        _check_text(value, at)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, at)
            _check(inner, (at, name), level + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, (at, number), level + 1)
    elif isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise _bad(f"{_written(at) or 'The body'} is too large a number.")


def _written(at: Place) -> str:
    """The path as text, such as `messages[3].text`.

    Built only for errors: names can be as long as the body, with any number of values below.
    """
    steps: list[str] = []
    while at:
        at, step = at
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def _check_text(text: str, at: Place) -> None:
    if not is_storable(text):
        named = _written(at)
        where = named if named and is_storable(named) else "The body"
        raise Problem(
            400,
            "unstorable_text",
            f"{where} has a character that cannot be stored: NUL, or half of a surrogate pair.",
        )


# A null says nothing for a field that may be left out: many clients send all their fields. (As a
# docstring this would describe every schema that inherits it.)
class Shape(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = {
                name: value
                for name, value in data.items()
                if value is not None or not self._may_be_left_out(name)
            }
        return super().to_internal_value(data)

    def _may_be_left_out(self, name: str) -> bool:
        field = self.fields.get(name)
        return field is not None and not field.required and not field.allow_null


class ExactText(serializers.CharField):
    """A text field that neither trims nor coerces its input."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Choice(serializers.ChoiceField):
    """One of a few; its error says which there are."""

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "invalid_choice":
            known = ", ".join(map(str, self.choices))
            raise serializers.ValidationError(f"This is none of {known}.", key)
        super().fail(key, **values)

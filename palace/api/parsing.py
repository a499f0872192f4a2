"""JSON as it comes in: whole, in UTF-8, and of nothing that cannot be kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from palace.api.problems import Problem
from palace.storable import is_storable

MOST_BYTES = 8 << 20
MOST_LEVELS = 60


class StrictJSON(BaseParser):
    """Refuses what is not JSON to the letter, with a sentence that says where."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return read_json(stream.read(MOST_BYTES + 1))


def read_json(body: bytes, what: str = "The body", *, most_bytes: int = MOST_BYTES) -> Any:
    """
    Args:
        what: How sentences call it.

    Raises:
        Problem: 413 or 400; it is too large, or no JSON, or holds what cannot be kept.
    """
    if len(body) > most_bytes:
        most = most_bytes >> 20
        raise Problem(413, "too_large", f"{what} has up to {most} MB. Send less at once.")
    try:
        read = json.loads(body.decode(), parse_constant=_no_number, parse_int=_number)
    except UnicodeDecodeError as error:
        raise _bad(f"{what} is not in UTF-8: byte {error.start} is none of a text.") from None
    except RecursionError:
        raise _bad(f"{what} is nested deeper than {MOST_LEVELS} levels.") from None
    except ValueError as error:
        raise _bad(f"{what} is no JSON: {error}.") from None
    _check(read, "", 0)
    return read


def _bad(sentence: str) -> Problem:
    return Problem(400, "bad_json", sentence)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _number(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"the number {digits[:10]}… is too large")
    return int(digits)


def _check(value: Any, at: str, level: int) -> None:
    if level > MOST_LEVELS:
        raise _bad(f"The body is nested deeper than {MOST_LEVELS} levels.")
    if isinstance(value, str):
        _check_text(value, at)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, at)
            _check(inner, f"{at}.{name}" if at else name, level + 1)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _check(inner, f"{at}[{place}]", level + 1)
    elif isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise _bad(f"{at or 'The body'} is too large a number.")


def _check_text(text: str, at: str) -> None:
    if not is_storable(text):
        where = at if at and is_storable(at) else "The body"
        raise Problem(
            400,
            "unstorable_text",
            f"{where} holds a character that cannot be stored: NUL, or half of a surrogate pair.",
        )

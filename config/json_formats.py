"""JSON of log lines, without content (no text of a message, no question, no key, no address), and
of the cache.

Records of libraries have paths with people's names, arguments of tasks, and values in database
errors. So only listed fields are written, and errors are reduced to harmless parts.

The cache stores JSON, not pickles, which could run code of anyone who can write to Redis. The clock
imports this module, which knows no models.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import redis
from django.db import InterfaceError, OperationalError

from config.environment import BASE_DIR
from llm.errors import LLMError
from settings_app import request_id

# Errors whose messages have no content: those of `llm.errors`, and those about connections. Other
# errors quote values.
_HARMLESS = (LLMError, redis.RedisError, OperationalError, InterfaceError)
_LINES_OF_FILE = -3
_ADDRESS = re.compile(r"https?://\S+")


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, `request_id`, `error`, and a record's own `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if request_id.current():
            line["request_id"] = request_id.current()
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _error(record.exc_info[1], record.exc_info[2])
        return json.dumps(line, ensure_ascii=False, default=type)


def _message(record: logging.LogRecord) -> str:
    arguments = record.args
    if isinstance(arguments, Mapping):
        # Celery's records have the error, its trace and the task's arguments.
        shown: Any = {name: _shown(value, record) for name, value in arguments.items()}
        shown |= {name: "" for name in ("exc", "traceback", "return_value") if name in shown}
    else:
        shown = tuple(_shown(value, record) for value in arguments or ())
    return (str(record.msg) % shown if shown else str(record.msg)).strip()


def _shown(value: object, record: logging.LogRecord) -> object:
    if isinstance(value, BaseException):
        return in_short(value)
    # Django's records of requests have the path, which may contain people's names.
    request = getattr(record, "request", None)
    path = getattr(request, "path", None)
    # The form in which Django logs it.
    if path is not None and value in (path, path.encode("unicode_escape").decode()):
        match = getattr(request, "resolver_match", None)
        return match.view_name if match else "(path)"
    # Why a form was refused: the page that it came from, which may have a question in its address.
    return _ADDRESS.sub("(address)", value) if isinstance(value, str) and path else value


def in_short(error: BaseException) -> str:
    """The error in short, without its values."""
    name = type(error).__name__
    if isinstance(error, _HARMLESS):
        return str(error) or name
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    return name


def _error(error: BaseException, trace: TracebackType | None) -> dict[str, Any]:
    """Type, harmless message and frames, the innermost last; no line of source, no value."""
    frames = [
        f"{_file(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(trace)
    ]
    described: dict[str, Any] = {"type": _type(error), "message": in_short(error), "at": frames}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        described["caused_by"] = _type(cause)
    return described


def _type(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _file(name: str) -> str:
    path = Path(name)
    if path.is_relative_to(BASE_DIR) and ".venv" not in path.parts:
        return str(path.relative_to(BASE_DIR))
    return "/".join(path.parts[_LINES_OF_FILE:])


class JsonSerializer:
    """For Django's Redis cache. Integers stay as they are, so that Redis can count with them."""

    def dumps(self, value: Any) -> int | bytes:
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)

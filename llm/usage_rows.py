"""Insert the rows of metered calls: at once, or together with what their caller stores.

A call that was free may be held back until then, which saves a statement. Whatever becomes of the
caller, it is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DatabaseError, OperationalError, connection

from llm.commits import ASYNC_COMMIT, is_disk_full
from llm.models import Usage

logger = logging.getLogger(__name__)

NOT_METERED = "A call is not metered: %s"
_held: ContextVar[list[Usage] | None] = ContextVar("held", default=None)


@contextmanager
def hold_free_calls() -> Iterator[None]:
    """Within the block free calls wait for `held_calls`; those left are stored as it ends."""
    calls: list[Usage] = []
    before = _held.set(calls)
    try:
        yield
    except BaseException:
        try:
            _store(calls)
        except DatabaseError as error:  # The other error says more, and is likely the cause.
            logger.warning(NOT_METERED, error)
        raise
    else:
        _store_unless_full(calls)
    finally:
        _held.reset(before)


def held_calls() -> list[Usage]:
    """The calls that wait; who stores them clears the list."""
    return _held.get() or []


def hold(call: Usage) -> bool:
    """Whether the call may wait, and now does."""
    calls = _held.get()
    if calls is None or call.owner_id is None:
        return False
    calls.append(call)
    return True


def insert(call: Usage, *, waits_for_disk: bool) -> bool:
    """Insert the row in one statement, which saves round trips; False if the owner is gone."""
    conditions = [] if waits_for_disk or connection.in_atomic_block else [ASYNC_COMMIT]
    statement, values = insertion(call, conditions)
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} RETURNING id", values)
        row = cursor.fetchone()
    call.pk = row and row[0]
    return row is not None


def insertion(call: Usage, conditions: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """An INSERT of the call, alone or as part of a statement, and its parameters.

    The owner's row is locked as the database does to check foreign keys, but early, when ours can
    still be skipped. So it waits for a running deletion.
    """
    names, fields = _columns()
    values: list[Any] = [field.pre_save(call, add=True) for field in fields]
    source, lock = "", ""
    if call.owner_id is not None:
        source = f" FROM {get_user_model()._meta.db_table}"
        conditions, lock = ["id = %s", *conditions], " FOR KEY SHARE"
        values.append(call.owner_id)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    places = ", ".join(["%s"] * len(fields))
    return f"INSERT INTO llm_usage ({names}) SELECT {places}{source}{where}{lock}", values


@cache
def _columns() -> tuple[str, list[Any]]:
    fields = [field for field in Usage._meta.local_concrete_fields if not field.primary_key]
    return ", ".join(f'"{field.column}"' for field in fields), fields


def _store(calls: list[Usage]) -> None:
    for call in calls:
        insert(call, waits_for_disk=False)


def _store_unless_full(calls: list[Usage]) -> None:
    try:
        _store(calls)
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        logger.warning(NOT_METERED, error)

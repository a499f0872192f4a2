"""Meter every call to a model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal

from django.contrib.auth import get_user_model
from django.db import connection, transaction

from llm import prices, providers
from llm.errors import LLMError
from llm.models import Usage

OK, CANCELLED, CRASHED = "ok", "cancelled", "crashed"

_noted: ContextVar[list[Usage] | None] = ContextVar("noted", default=None)


@dataclass
class Meter:
    """Measurements of a call, filled in while it runs."""

    tokens_in: int = 0
    tokens_out: int = 0
    # The charge that the provider reports; None to use the price table.
    cost_usd: Decimal | None = None
    outcome: str = OK
    duration_ms: float = 0.0


def record(
    *,
    purpose: str,
    provider: str,
    model: str,
    duration_ms: float,
    owner_id: int | None = None,
    tokens_in: int = 0,
    tokens_out: int = 0,
    cost_usd: Decimal | None = None,
    outcome: str = OK,
) -> Usage | None:
    """Store one call. The cost defaults to the price table's; self-hosted models are free.

    Returns None and stores nothing if the account was deleted meanwhile.
    """
    if cost_usd is None:
        cost_usd = (
            Decimal(0)
            if providers.is_self_hosted(provider)
            else prices.cost_usd(model, tokens_in, tokens_out)
        )
    with transaction.atomic(savepoint=False):
        if owner_id is not None and not _still_there(owner_id):
            return None
        usage = Usage.objects.create(
            owner_id=owner_id,
            purpose=Usage.Purpose(purpose),
            provider=providers.shown(provider)[:200],
            model=model[:200],
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_usd=cost_usd,
            duration_ms=round(duration_ms),
            outcome=outcome,
        )
    noted = _noted.get()
    if noted is not None:
        noted.append(usage)
    return usage


@contextmanager
def noted() -> Iterator[list[Usage]]:
    """Collect the calls stored within this block, in order."""
    calls: list[Usage] = []
    before = _noted.set(calls)
    try:
        yield calls
    finally:
        _noted.reset(before)


def _still_there(owner_id: int) -> bool:
    """Whether the user exists; if so, the user cannot be deleted until this transaction ends.

    Waits for a running deletion. This is the lock by which the database checks foreign keys, taken
    early, when the row can still be skipped.
    """
    users = get_user_model()._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT FROM {users} WHERE id = %s FOR KEY SHARE", [owner_id])
        return bool(cursor.rowcount)


@contextmanager
def metered(
    *, purpose: str, provider: str, model: str, owner_id: int | None = None
) -> Iterator[Meter]:
    """Time the block and store one `Usage` row, whatever its outcome.

    A rolled-back transaction deletes the row: call models outside of one.
    """
    meter = Meter()
    try:
        with timed(meter):
            yield meter
    finally:
        keep(meter, purpose=purpose, provider=provider, model=model, owner_id=owner_id)


@contextmanager
def timed(meter: Meter) -> Iterator[None]:
    """Time the block and set the meter's outcome; nothing is stored."""
    started = time.perf_counter()
    try:
        yield
    except LLMError as error:
        meter.outcome = error.code
        raise
    except GeneratorExit:
        meter.outcome = CANCELLED
        raise
    except BaseException:
        meter.outcome = CRASHED
        raise
    finally:
        meter.duration_ms = (time.perf_counter() - started) * 1000


def keep(
    meter: Meter, *, purpose: str, provider: str, model: str, owner_id: int | None = None
) -> None:
    record(
        purpose=purpose,
        provider=provider,
        model=model,
        owner_id=owner_id,
        duration_ms=meter.duration_ms,
        tokens_in=meter.tokens_in,
        tokens_out=meter.tokens_out,
        cost_usd=meter.cost_usd,
        outcome=meter.outcome,
    )

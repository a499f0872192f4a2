"""Audit: read-only checks of a palace's consistency, on one snapshot of the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction

from palace.audit import drawers, facts, references
from palace.audit.finding import Check, Finding
from palace.audit.references import Named, check_ledgers
from palace.models import Palace

CHECKS: tuple[Check, ...] = (
    *drawers.CHECKS,
    *facts.CHECKS,
    *references.CHECKS,
)


@contextmanager
def snapshot() -> Iterator[None]:
    """Inside the block all queries see the same snapshot, and nothing can be written."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def audit_palace(
    palace: Palace, named: Named | None = None, more: Sequence[Check] = ()
) -> list[Finding]:
    """The findings of all checks, in their order.

    Args:
        named: The ids in the palace's ledgers; None if Redis is unavailable.
        more: Checks of packages above this one.
    """
    found = [check(palace) for check in (*more, *CHECKS)]
    return found if named is None else [*found, check_ledgers(palace, named)]

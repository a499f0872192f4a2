"""The result of a check; most checks are one query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection

from palace.models import Palace

# The most ids that a finding shows.
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The check's name.
        rule: What must hold, in one sentence.
        wrong: How many rows break the rule.
        examples: Ids of the first few.
    """

    check: str
    rule: str
    wrong: int = 0
    examples: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "examples": list(self.examples)}


Check = Callable[[Palace], Finding]


def finding(check: str, rule: str, wrong: Sequence[object]) -> Finding:
    """The finding of a check, from the ids that are wrong."""
    return Finding(check, rule, len(wrong), tuple(str(each) for each in wrong[:SHOWN]))


def rows_breaking(check: str, rule: str, query: str) -> Check:
    """A check that is one query.

    Args:
        query: Selects the id of each row that breaks the rule; `%(palace)s` is the palace's key.
    """
    statement = (
        f"SELECT id::text, count(*) OVER () FROM ({query}) w (id)"  # noqa: S608 - written by us.
        f" ORDER BY 1 LIMIT {SHOWN}"
    )

    def run(palace: Palace) -> Finding:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"palace": palace.pk})
            rows = cursor.fetchall()
        return Finding(check, rule, rows[0][1] if rows else 0, tuple(row[0] for row in rows))

    return run

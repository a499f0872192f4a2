"""The ledgers in Redis name drawers and facts of their palace, or purged ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from uuid import UUID

from palace.audit.finding import Finding, finding
from palace.audit.traces import unexplained
from palace.models import Palace
from palace.working.ledger import all_items

KINDS = ("drawer", "fact")

# By kind, the ids that the ledgers of a palace name.
Named = Mapping[str, set[UUID]]


def read_ledgers(palace: Palace) -> Named:
    """Call it before the snapshot: whatever a ledger names by then, the snapshot has or had.

    Raises:
        WorkingMemoryAway: Redis does not answer.
    """
    named: defaultdict[str, set[UUID]] = defaultdict(set)
    for item in all_items(palace):
        kind, _, name = item.partition(":")
        # A program may give an item any name, so not all that look like ids are ours.
        if kind in KINDS and (uuid := _uuid(name)):
            named[kind].add(uuid)
    return named


def check_ledgers(palace: Palace, named: Named) -> Finding:
    wrong = [each for kind in KINDS for each in unexplained(palace, kind, named.get(kind, set()))]
    return finding(
        "ledger-ids",
        "The drawers and facts that ledgers name are of this palace, or were purged.",
        wrong,
    )


def _uuid(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None

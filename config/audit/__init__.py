"""Audit palaces: all read-only checks of their consistency, each palace on one snapshot.

The chat's checks are here: each of its filed messages is one drawer, equal to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from chat.models import Message
from config.audit import drawers
from config.audit.drawers import Check, Finding, finding, rows_breaking
from config.audit.facts_and_references import (
    CHECKS_OF_FACTS,
    CHECKS_OF_REFERENCES,
    Named,
    check_ledgers,
    files_have_their_imports,
    read_ledgers,
)
from isolation import row_access
from isolation.policies import unprotected
from language.errors import WorkingMemoryAway
from palace.models import Drawer, Fact, Palace
from palace.storage import message_key

REDIS_AWAY = "Redis does not answer, so the ledgers were not checked."
_KEPT = f"""
SELECT m.uuid::text FROM chat_message m
JOIN chat_conversation c ON c.palace_id = m.palace_id AND c.id = m.conversation_id
WHERE m.palace_id = %s AND m.mined_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM palace_drawer d WHERE d.palace_id = m.palace_id AND d.source = 'chat'
  AND d.conversation = c.uuid::text AND d.external_id = m.uuid::text)
AND NOT EXISTS (
  SELECT FROM palace_acceptedmessage a WHERE a.palace_id = m.palace_id
  AND a.purged_key = {message_key("'chat'", "c.uuid", "m.uuid")})
ORDER BY m.id
"""  # noqa: S608 - names of our own columns.


@dataclass(frozen=True, slots=True)
class PalaceAudit:
    """
    Attributes:
        counts: The number of checked rows, by kind.
    """

    palace: UUID
    name: str
    counts: dict[str, int]
    findings: list[Finding]

    def as_json(self) -> dict[str, Any]:
        findings = [finding.as_json() for finding in self.findings]
        named = {"palace": str(self.palace), "name": self.name}
        return {**named, "counts": self.counts, "findings": findings}


@dataclass(slots=True)
class Audited:
    """The result of an audit.

    Attributes:
        installation: Findings that belong to no palace.
        notes: What could not be checked, in sentences.
    """

    palaces: list[PalaceAudit] = field(default_factory=list)
    installation: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        return [*(each for one in self.palaces for each in one.findings), *self.installation]

    @property
    def checks(self) -> int:
        return len(self.findings)

    @property
    def wrong(self) -> int:
        """How many checks failed."""
        return sum(finding.wrong > 0 for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "checks": self.checks,
            "failed": self.wrong,
            "palaces": [each.as_json() for each in self.palaces],
            "installation": [finding.as_json() for finding in self.installation],
            "notes": self.notes,
        }


@row_access.sweep("integrity")
def audit(palaces: Iterable[Palace], *, everything: bool) -> Audited:
    """Check palaces one after the other.

    Args:
        everything: Also check rows of no palace.
    """
    audited = Audited()
    for palace in palaces:
        named = _ledgers(palace, audited)
        with snapshot():
            audited.palaces.append(
                PalaceAudit(
                    palace.uuid,
                    palace.subject or palace.owner.get_username(),
                    _counts(palace),
                    audit_palace(palace, named),
                )
            )
    if everything:
        audited.installation += [files_have_their_imports(), _tables_are_protected()]
    return audited


@contextmanager
def snapshot() -> Iterator[None]:
    """Inside the block all queries see the same snapshot, and nothing can be written."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def audit_palace(palace: Palace, named: Named | None = None) -> list[Finding]:
    """The findings of all checks of a palace, in their order.

    Args:
        named: The ids in the palace's ledgers; None if Redis is unavailable.
    """
    found = [check(palace) for check in CHECKS]
    return found if named is None else [*found, check_ledgers(palace, named)]


def _tables_are_protected() -> Finding:
    return finding(
        "row-security",
        "Each table of a palace or an account has its policies, which no role bypasses.",
        unprotected(connection),
    )


def _ledgers(palace: Palace, audited: Audited) -> Named | None:
    try:
        return read_ledgers(palace)
    except WorkingMemoryAway:
        if REDIS_AWAY not in audited.notes:
            audited.notes.append(REDIS_AWAY)
        return None


def _counts(palace: Palace) -> dict[str, int]:
    return {
        "drawers": Drawer.objects.within(palace).count(),
        "facts": Fact.objects.within(palace).count(),
        "chat messages": Message.objects.within(palace).count(),
    }


def messages_are_kept(palace: Palace) -> Finding:
    """Purged messages stay in the chat; older purges recorded only their number."""
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, [palace.pk])
        missing = [uuid for (uuid,) in cursor.fetchall()]
    return finding(
        "message-kept",
        "A message that the chat gave to the palace is a drawer there, unless it was purged.",
        missing if len(missing) > palace.purged_unnamed else [],
    )


CHAT_CHECKS = (
    messages_are_kept,
    rows_breaking(
        "reply-once",
        "A question of the chat is followed by its reply, as far as it came.",
        "SELECT m.uuid FROM chat_message m WHERE m.palace_id = %(palace)s AND m.role = 'user'"
        " AND m.file_name = '' AND m.replaced_at IS NULL AND NOT EXISTS ("
        "SELECT FROM chat_message r WHERE r.palace_id = m.palace_id"
        " AND r.conversation_id = m.conversation_id AND r.position = m.position + 1"
        " AND r.role = 'assistant' AND r.replaced_at IS NULL)",
    ),
    rows_breaking(
        "message-verbatim",
        "A drawer of the chat says to the byte what its message says.",
        "SELECT m.uuid FROM chat_message m"
        " JOIN chat_conversation c ON c.palace_id = m.palace_id AND c.id = m.conversation_id"
        " JOIN palace_drawer d ON d.palace_id = m.palace_id AND d.source = 'chat'"
        " AND d.conversation = c.uuid::text AND d.external_id = m.uuid::text"
        " WHERE m.palace_id = %(palace)s AND (convert_to(m.text, 'UTF8')"
        " <> convert_to(d.text, 'UTF8') OR m.said_at <> d.said_at)",
    ),
)
CHECKS: tuple[Check, ...] = (
    *CHAT_CHECKS,
    *drawers.CHECKS,
    *CHECKS_OF_FACTS,
    *CHECKS_OF_REFERENCES,
)

"""Each message of the chat that was given to the palace is one drawer there, to the byte."""

from __future__ import annotations

from django.db import connection

from palace.audit.finding import SHOWN, Finding, rows_breaking
from palace.audit.references import purged
from palace.models import Palace

_KEPT = """
SELECT m.uuid::text FROM chat_message m
JOIN chat_conversation c ON c.palace_id = m.palace_id AND c.id = m.conversation_id
WHERE m.palace_id = %s AND m.mined_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM palace_drawer d WHERE d.palace_id = m.palace_id AND d.source = 'chat'
  AND d.conversation = c.uuid::text AND d.external_id = m.uuid::text)
ORDER BY m.id
"""


def messages_are_kept(palace: Palace) -> Finding:
    """What was purged stays in the chat: as many may be without a drawer, and no more."""
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, [palace.pk])
        missing = [uuid for (uuid,) in cursor.fetchall()]
    lost = max(0, len(missing) - purged(palace))
    return Finding(
        "message-kept",
        "A message that the chat gave to the palace is a drawer there, unless it was purged.",
        lost,
        tuple(missing[:SHOWN]) if lost else (),
    )


CHECKS = (
    messages_are_kept,
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

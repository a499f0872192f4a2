"""A record of accepted messages apart from the drawers, so that an audit can find lost ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from uuid import UUID

from django.db import connection

from palace.models import AcceptedMessage, Palace
from palace.storage.bulk_insert import insert_rows

DIGEST_BYTES = 16
# The same digest in SQL, of a column that is formatted in.
TEXT_DIGEST = f"substring(sha256(convert_to({{}}, 'UTF8')) FOR {DIGEST_BYTES})"


def message_key(source: str, conversation: str, message: str) -> str:
    """SQL: which message of which conversation, in 16 bytes. The arguments are SQL as well."""
    return TEXT_DIGEST.format(f"concat_ws(chr(31), {source}, {conversation}, {message})")


# Messages from before this record have no row.
_PURGED = f"""
INSERT INTO palace_acceptedmessage (palace_id, uuid, purged_at, purged_key)
SELECT palace_id, uuid, now(), {message_key("source", "conversation", "external_id")}
FROM palace_drawer WHERE palace_id = %s AND id = ANY(%s)
ON CONFLICT (palace_id, uuid) DO UPDATE
SET digest = NULL, purged_at = excluded.purged_at, purged_key = excluded.purged_key
"""  # noqa: S608 - names of our own columns.


def record_accepted(palace: Palace, messages: Iterable[tuple[UUID, str]]) -> None:
    """Record messages as they came; call it in the transaction that writes their drawers.

    Args:
        messages: The drawers' ids, and the texts.
    """
    insert_rows(
        AcceptedMessage,
        ("palace_id", "uuid", "digest"),
        ((palace.pk, uuid, text_digest(text)) for uuid, text in messages),
    )


def record_purged(palace: Palace, drawers: Sequence[int]) -> None:
    """Record drawers as purged; call it in the transaction that deletes them, before it does."""
    with connection.cursor() as cursor:
        cursor.execute(_PURGED, [palace.pk, list(drawers)])


def purged_among(
    palace: Palace, source: str, conversation: str, messages: Iterable[str]
) -> set[str]:
    """Those of a conversation's messages, by their ids, that were deleted for good."""
    keys = {_message_key(source, conversation, message): message for message in messages}
    purged = AcceptedMessage.objects.filter(palace=palace, purged_key__in=list(keys))
    found = purged.values_list("purged_key", flat=True)
    return {keys[bytes(key)] for key in found if key is not None}


def _message_key(*ids: str) -> bytes:
    """What `message_key` is in SQL."""
    return text_digest(chr(31).join(ids))


def text_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()[:DIGEST_BYTES]

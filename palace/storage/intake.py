"""Intake: where messages are filed, what a palace accepts, and a record of what it accepted.

Places are wings by name, and numbers of rooms. The quota says how many messages, and how much text,
a palace may hold; it is off by default. A summary that a caller stored counts as a message, with
its lists as text. What is in the trash counts: it is still stored. What is derived of messages does
not count.

What is stored already, and is not stored again, `transcript_filing` finds.

The record is kept apart from the drawers, so that an audit can find lost ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, Func, IntegerField, Max, Q, Sum, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from language.errors import QuotaExceeded
from language.extraction import WingFound
from language.slugs import slug_of
from language.storable import LABEL_LENGTH
from palace.models import AcceptedMessage, Activity, Episode, Palace, Room, Wing, WingAlias
from palace.storage.bulk_insert import insert_rows


def next_room_number(palace: Palace) -> int:
    highest = Room.objects.filter(palace=palace).aggregate(Max("number"))["number__max"] or 0
    purged = Palace.objects.values_list("highest_room", flat=True).get(pk=palace.pk)
    return max(highest, purged) + 1


def unsorted_wing(palace: Palace) -> Wing:
    wing, _ = Wing.objects.get_or_create(
        palace=palace,
        number=Wing.UNSORTED,
        defaults={"slug": "unsorted", "name": "Unsorted", "kind": Wing.Kind.TOPIC},
    )
    return wing


def known_wing(palace: Palace, found: WingFound) -> Wing | None:
    """The wing with that name or alias, if there is one."""
    slugs = _slugs(found)
    wings = Wing.objects.filter(palace=palace)
    wing = wings.filter(slug=slugs[0]).first()
    return wing or wings.filter(aliases__slug__in=slugs).order_by("number").first()


def _slugs(found: WingFound) -> list[str]:
    return list(dict.fromkeys(map(slug_of, (found.name, *found.aliases))))


def wing_for(palace: Palace, found: WingFound) -> Wing:
    """The wing with that name or alias, created if missing. The caller locks the palace."""
    slugs = _slugs(found)
    wing = known_wing(palace, found)
    if wing is None:
        highest = Wing.objects.filter(palace=palace).aggregate(Max("number"))["number__max"] or 0
        gone = Palace.objects.values_list("highest_wing", flat=True).get(pk=palace.pk)
        wing = Wing.objects.create(
            palace=palace,
            number=max(highest, gone) + 1,
            slug=slugs[0],
            name=found.name[:LABEL_LENGTH],
            kind=found.kind,
        )
    known = WingAlias.objects.filter(palace=palace, slug__in=slugs)
    taken = set(known.values_list("slug", flat=True))
    missing = [
        WingAlias(palace=palace, wing=wing, slug=slug) for slug in slugs if slug not in taken
    ]
    if missing:
        WingAlias.objects.bulk_create(missing)
    return wing


def put_wing_back(palace: Palace, record: Mapping[str, Any]) -> Wing:
    """A wing that is gone, as it was, from a record of curation; the caller locks the palace.

    Of its aliases, those that other wings took meanwhile stay theirs.
    """
    columns = dict(record)
    aliases = [*columns.pop("aliases", ()), record["slug"]]
    created_at = columns.pop("created_at", None)
    wing = Wing(palace=palace, **columns)
    wing.save(force_insert=True)
    if created_at:  # Else it would be new: saving sets the column.
        Wing.objects.within(palace).filter(pk=wing.pk).update(created_at=created_at)
    rows = [WingAlias(palace=palace, wing=wing, slug=slug) for slug in aliases]
    WingAlias.objects.bulk_create(rows, ignore_conflicts=True)
    return wing


def emptied_again(palace: Palace, slug: str) -> None:
    """Bring back the wing with this alias that a move emptied, unless another one has its name.

    So it keeps its name and rules, and the move can still be undone. The caller locks the palace.
    """
    moves = Activity.objects.filter(palace=palace, kind=Activity.Kind.DRAWERS_MOVED)
    emptied = moves.filter(detail__undo__wings__contains=[{"aliases": [slug]}])
    for move in emptied.order_by("-pk")[:1]:
        [record] = [each for each in move.detail["undo"]["wings"] if slug in each["aliases"]]
        taken = Wing.objects.within(palace).filter(Q(pk=record["id"]) | Q(slug=record["slug"]))
        if not taken.exists():
            put_wing_back(palace, record)


MB = 1 << 20
DIGEST_BYTES = 16
# The same digest in SQL, of a column that is formatted in.
TEXT_DIGEST = f"substring(sha256(convert_to({{}}, 'UTF8')) FOR {DIGEST_BYTES})"


@dataclass(frozen=True, slots=True)
class Usage:
    """The messages and stored summaries of a palace, and the bytes of their text in UTF-8."""

    messages: int
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Quota:
    """The most a palace may hold; None for no limit."""

    messages: int | None
    text_bytes: int | None

    @property
    def is_set(self) -> bool:
        return self.messages is not None or self.text_bytes is not None


def palace_quota() -> Quota:
    """The configured quota, the same for every palace."""
    most_bytes = int(settings.QUOTA_MB * MB)
    return Quota(settings.QUOTA_MESSAGES or None, most_bytes or None)


def usage_of(palace: Palace) -> Usage:
    lists = (Cast(name, TextField()) for name in ("key_decisions", "entities", "tools"))
    summary = sum(map(_bytes, lists), _bytes("summary"))
    summaries = Episode.objects.within(palace).stored()
    stored = summaries.aggregate(rows=Count("pk"), text=Sum(summary))
    rooms = Room.objects.within(palace)
    said = rooms.aggregate(rows=Sum("stored_count", default=0), text=Sum("stored_bytes", default=0))
    return Usage(said["rows"] + stored["rows"], int(said["text"]) + (stored["text"] or 0))


def _bytes(text: str | Cast) -> Combinable:
    """The length as UTF-8, which is known without reading the text."""
    return Func(text, function="octet_length", output_field=IntegerField())


def check_quota(palace: Palace, texts: Sequence[str]) -> None:
    """Check that these messages, or this summary, fit in addition to the palace's content.

    Call it with the palace locked, or two writers can exceed the quota together.

    Raises:
        QuotaExceeded: they do not.
    """
    most = palace_quota()
    if not most.is_set:
        return
    used = usage_of(palace)
    more_bytes = sum(len(text.encode()) for text in texts)
    if most.messages is not None and used.messages + len(texts) > most.messages:
        raise QuotaExceeded("messages", most.messages, used.messages, len(texts))
    if most.text_bytes is not None and used.text_bytes + more_bytes > most.text_bytes:
        raise QuotaExceeded("bytes of text", most.text_bytes, used.text_bytes, more_bytes)


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

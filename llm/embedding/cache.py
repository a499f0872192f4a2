"""The identity of an embedding model, and the cache of its recent vectors in the database.

A row's key is a keyed hash: without the deployment's secret, the table reveals neither the texts
nor whether it contains a guessed one. Lookups and inserts are one statement each.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection
from django.utils import timezone

from isolation import row_access
from llm import providers
from llm.models import CachedEmbedding


@dataclass(frozen=True)
class EmbeddingModel:
    """An embedding model. Two models that compare equal make the same vectors."""

    provider: str
    name: str
    dimensions: int
    api_key: str = field(default="", repr=False, compare=False)

    @property
    def is_local(self) -> bool:
        return self.provider == providers.LOCAL


_TABLE = CachedEmbedding._meta.db_table


def keys(texts: Iterable[str], model: EmbeddingModel) -> list[UUID]:
    secret = hashlib.sha256(b"llm.embedding.cache\0" + settings.SECRET_KEY.encode()).digest()
    identity = f"{model.provider}\0{model.name}\0{model.dimensions}".encode()
    model_key = hmac.digest(secret, identity, "sha256")
    return [UUID(bytes=hmac.digest(model_key, text.encode(), "sha256")[:16]) for text in texts]


def look_up(wanted: Sequence[UUID]) -> dict[UUID, bytes]:
    """The cached vectors by key; each is marked as used today."""
    today = timezone.now().date()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT key, vector, used_on FROM {_TABLE} WHERE key = ANY(%s)",  # noqa: S608
            [list(wanted)],
        )
        rows: list[tuple[UUID, bytes, date]] = cursor.fetchall()
        stale = [key for key, _vector, used_on in rows if used_on < today]
        if stale:
            # Skip rows that another process is marking.
            cursor.execute(
                f"UPDATE {_TABLE} SET used_on = %s WHERE key IN "  # noqa: S608
                f"(SELECT key FROM {_TABLE} WHERE key = ANY(%s) FOR UPDATE SKIP LOCKED)",
                [today, stale],
            )
    return {key: bytes(vector) for key, vector, _used_on in rows}


def keep(vectors: Mapping[UUID, bytes]) -> None:
    """Insert the vectors; existing rows stay.

    Args:
        vectors: All of one model, so of one length.
    """
    if not vectors:
        return
    # Sorted, so that two processes inserting the same texts cannot deadlock.
    ordered = sorted(vectors)
    # All keys as one binary value and all vectors as another: an array of values takes the server
    # several times as long to parse as to store.
    size = len(vectors[ordered[0]])
    sent = b"".join(key.bytes for key in ordered), b"".join(vectors[key] for key in ordered)
    connection.ensure_connection()
    row_access.apply(connection.connection)
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(
            f"INSERT INTO {_TABLE} (key, vector, used_on) "  # noqa: S608
            "SELECT encode(substring(%b FROM 1 + 16 * place FOR 16), 'hex')::uuid,"
            " substring(%b FROM 1 + %s * place FOR %s), %s"
            " FROM generate_series(0, %s - 1) AS place ON CONFLICT DO NOTHING",
            [sent[0], sent[1], size, size, timezone.now().date(), len(ordered)],
        )


def forget(texts: Iterable[str], model: EmbeddingModel) -> int:
    """Delete the vectors of these texts, when the texts themselves are purged."""
    with connection.cursor() as cursor:
        # Sorted, so that two processes forgetting the same texts cannot deadlock.
        cursor.execute(
            f"DELETE FROM {_TABLE} WHERE key IN "  # noqa: S608
            f"(SELECT key FROM {_TABLE} WHERE key = ANY(%s) ORDER BY key FOR UPDATE)",
            [keys(texts, model)],
        )
        deleted: int = cursor.rowcount
    return deleted


def prune(older_than_days: int = 30) -> int:
    """Delete vectors unused for that many days; returns their number."""
    limit = timezone.now().date() - timedelta(days=older_than_days)
    with connection.cursor() as cursor:
        # Skip rows that another process is deleting or marking.
        cursor.execute(
            f"DELETE FROM {_TABLE} WHERE key IN "  # noqa: S608
            f"(SELECT key FROM {_TABLE} WHERE used_on < %s FOR UPDATE SKIP LOCKED)",
            [limit],
        )
        deleted: int = cursor.rowcount
    return deleted

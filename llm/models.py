"""The usage log of model calls, and the cache of embeddings.

Rows of metered calls are inserted at once, or together with what their caller stores. A call that
was free may be held back until then, which saves a statement. Whatever becomes of the caller, it is
stored.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, OperationalError, connection, models

from llm.database_writes import ASYNC_COMMIT, is_disk_full


class Usage(models.Model):
    """One call to a model: purpose, tokens, cost, duration, outcome, and what it sent where.

    Never its text. What a call was made of are references: see `llm.sent`.
    """

    class Purpose(models.TextChoices):
        MEMORY_EMBED = "memory_embed", "Embedding memories and questions"
        MEMORY_EXTRACT = "memory_extract", "Reading conversations"
        MEMORY_REWRITE = "memory_rewrite", "Rewriting questions"
        MEMORY_RERANK = "memory_rerank", "Ordering what was found"
        MEMORY_QA = "memory_qa", "Answering from memory"
        MEMORY_DREAM = "memory_dream", "Dreaming"
        CHAT = "chat", "Chat"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        related_name="model_usage",
        help_text="For whom; null for work that is nobody's in particular.",
    )
    purpose = models.CharField(max_length=20, choices=Purpose)
    provider = models.CharField(max_length=200, help_text="local, a preset's name or a base URL.")
    model = models.CharField(max_length=200)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="Null where the price is not known."
    )
    duration_ms = models.PositiveIntegerField(help_text="Retries and waits included.")
    outcome = models.CharField(
        max_length=40, default="ok", help_text="ok, cancelled, or the code of what went wrong."
    )
    host = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="Who was sent something; empty if nobody.",
    )
    characters = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the texts that were sent."
    )
    requests = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="How often it was sent, retries included; 0 if it never was.",
    )
    references = ArrayField(
        models.CharField(max_length=80),
        default=list,
        db_default=[],
        blank=True,
        help_text="What it was made of, such as drawer:12; never its text.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "usage"
        indexes = [
            models.Index(fields=["owner", "created_at"], name="usage_by_owner"),
            models.Index(
                fields=["owner", "-id"], condition=models.Q(requests__gt=0), name="usage_sent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.provider}/{self.model} {self.outcome}"


class CachedEmbedding(models.Model):
    """The cached vector of a text, under a keyed hash that does not reveal the text.

    Only `llm.embedding.cache` reads and writes it.
    """

    key = models.UUIDField(
        primary_key=True, help_text="The first half of an HMAC-SHA256 over model and text."
    )
    vector = models.BinaryField(help_text="Little-endian float16.")
    used_on = models.DateField(db_index=True)

    def __str__(self) -> str:
        return str(self.key)


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


def hold_call(call: Usage) -> bool:
    """Whether the call may wait, and now does."""
    calls = _held.get()
    if calls is None or call.owner_id is None:
        return False
    calls.append(call)
    return True


def insert_call(call: Usage, *, waits_for_disk: bool) -> bool:
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
        insert_call(call, waits_for_disk=False)


def _store_unless_full(calls: list[Usage]) -> None:
    try:
        _store(calls)
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        logger.warning(NOT_METERED, error)

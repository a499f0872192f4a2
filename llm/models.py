"""The usage log of model calls, and the cache of embeddings."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


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

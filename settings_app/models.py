"""A user's settings. A user who has changed nothing has the defaults, and no row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from llm import providers
from llm.errors import ModelRefused
from llm.providers import Endpoint
from settings_app.api_keys import ApiKey, AuditLine
from settings_app.second_step import SecondStep
from settings_app.secrets import Unreadable, seal, unseal
from settings_app.sessions import Session
from settings_app.time_zone import zone_named

__all__ = [
    "ApiKey",
    "AuditLine",
    "ChatModel",
    "MemorySettings",
    "ModelUse",
    "SecondStep",
    "Session",
    "asking",
    "settings_of",
]

MOST_TOP_K = 50
_asked_instead: ContextVar[Endpoint | None] = ContextVar("model of a program", default=None)


class ModelUse(models.TextChoices):
    """The uses of a model; each has a switch."""

    REPLIES = "replies", "Replies"
    FILING = "filing", "Filing and summaries"
    FACTS = "facts", "Facts"
    RERANK = "rerank", "Ordering what was found"
    DREAMS = "dreams", "Dreams"


def every_use() -> list[str]:
    return [use.value for use in ModelUse]


@contextmanager
def asking(endpoint: Endpoint | None) -> Iterator[None]:
    """Ask this model inside the block, ignoring users' choices; None: their own models.

    Users' permitted uses apply to this model too.
    """
    token = _asked_instead.set(endpoint)
    try:
        yield
    finally:
        _asked_instead.reset(token)


@dataclass(frozen=True, slots=True)
class ChatModel:
    """The model a user's texts go to.

    Attributes:
        endpoint: None without a model: local rules are used.
        note: Why the chosen model cannot be asked; empty if it can.
    """

    endpoint: Endpoint | None
    note: str = ""


class MemorySettings(models.Model):
    """How a user's memory works, and with which model."""

    # Values of `provider` other than the names of presets and base URLs.
    OF_THIS_SERVER = ""
    NO_MODEL = "none"

    class Dreams(models.TextChoices):
        """What happens at night. Only the last choice can cost anything."""

        OFF = "off", "Do not dream"
        LOCAL = "local", "By local rules, which cost nothing"
        MODEL = "model", "With the model, up to the limit"

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memory_settings"
    )
    enabled = models.BooleanField(
        default=True, help_text="Recall before each reply and mine after it."
    )
    top_k = models.PositiveSmallIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_TOP_K)],
        help_text="How many drawers a reply is given.",
    )
    recipe = models.CharField(
        max_length=50, default="default", help_text="How it looks: a recipe of recall."
    )
    use_rerank = models.BooleanField(
        default=False, help_text="Have a model put the best twenty in order."
    )
    rerank_model = models.CharField(
        max_length=200, blank=True, help_text="Empty: the provider's small one."
    )
    auto_mine = models.BooleanField(
        default=True, help_text="Mine each conversation by itself; else by hand."
    )
    dreams = models.CharField(max_length=5, choices=Dreams, default=Dreams.LOCAL)
    dream_preferences = models.BooleanField(
        default=True, help_text="Let a dream with the model infer preferences from what was said."
    )
    dream_limit_usd = models.DecimalField(
        max_digits=8,
        decimal_places=4,
        default=Decimal("0.25"),
        validators=[MinValueValidator(0)],
        help_text="What one dream may cost, where the model's price is known.",
    )
    dream_limit_tokens = models.PositiveIntegerField(
        default=150_000, help_text="What one dream may use, whatever the price."
    )
    dream_trusted = ArrayField(
        models.CharField(max_length=14),
        default=list,
        blank=True,
        help_text="Kinds of proposals that are applied without being asked for.",
    )
    provider = models.CharField(
        max_length=500,
        blank=True,
        default=OF_THIS_SERVER,
        help_text="A preset's name, a base URL, `none`, or empty for this server's.",
    )
    model = models.CharField(max_length=200, blank=True)
    sealed_key = models.TextField(blank=True, help_text="Encrypted; see settings_app.secrets.")
    uses = ArrayField(
        models.CharField(max_length=10, choices=ModelUse),
        default=every_use,
        db_default=every_use(),
        blank=True,
        help_text="What the model may be asked for, whoever chose it.",
    )
    awaits_consent = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The provider is not sent anything until the owner agrees.",
    )
    price_input = models.DecimalField(
        max_digits=10,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What a million tokens that the model reads cost, in US dollars.",
    )
    price_output = models.DecimalField(
        max_digits=10,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What a million tokens that it writes cost, in US dollars.",
    )
    time_zone = models.CharField(
        max_length=60, blank=True, help_text="An IANA name; empty means UTC."
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "memory settings"

    def __str__(self) -> str:
        return f"memory settings of user {self.owner_id}"

    @property
    def has_key(self) -> bool:
        return bool(self.sealed_key)

    def set_key(self, api_key: str) -> None:
        self.sealed_key = seal(api_key) if api_key else ""

    def local_now(self) -> datetime:
        """The current time in the user's time zone."""
        return timezone.now().astimezone(zone_named(self.time_zone))

    @property
    def is_own_provider(self) -> bool:
        return self.provider not in (self.OF_THIS_SERVER, self.NO_MODEL)

    def allows(self, use: ModelUse) -> bool:
        """Whether the model may be asked for this. A provider waits until its user agrees."""
        return use.value in self.uses and not self.awaits_consent

    def endpoint_for(self, use: ModelUse, model: str = "") -> Endpoint | None:
        """The model to ask for this use; None if none may be asked.

        Raises:
            ModelRefused: as `endpoint()`.
        """
        return self.endpoint(model) if self.allows(use) else None

    def endpoint(self, model: str = "") -> Endpoint | None:
        """The user's own model, else this server's; None if there is none or the user wants none.

        Only for pages that show or test it: work asks `endpoint_for()`.

        Args:
            model: Another of the same provider.

        Raises:
            ModelRefused: it cannot be asked as it is set; says what to set.
        """
        if (given := _asked_instead.get()) is not None:
            return given.with_model(model or given.model)
        if self.provider == self.NO_MODEL:
            return None
        if self.provider == self.OF_THIS_SERVER:
            servers = providers.deployment_endpoint()
            return self._priced(servers).with_model(model or servers.model) if servers else None
        try:
            api_key = unseal(self.sealed_key) if self.sealed_key else ""
        except Unreadable:
            raise ModelRefused(
                "The key that was saved can no longer be read, because this server's secret has "
                "changed. Enter it again in the settings."
            ) from None
        own = providers.endpoint(self.provider, self.model or model, api_key, of_a_user=True)
        return self._priced(own).with_model(model or own.model)

    def _priced(self, endpoint: Endpoint) -> Endpoint:
        if self.price_input is None or self.price_output is None:
            return endpoint
        return replace(endpoint, price=(self.price_input, self.price_output))

    def chat_model(self, use: ModelUse) -> ChatModel:
        """`endpoint_for()`; an error becomes a note."""
        return self.connection() if self.allows(use) else ChatModel(None)

    def connection(self) -> ChatModel:
        """`endpoint()`; an error becomes a note."""
        try:
            return ChatModel(self.endpoint())
        except ModelRefused as error:
            return ChatModel(None, str(error))

    def rerank_endpoint(self) -> Endpoint | None:
        """The model for reranking; None if reranking is off or there is no model.

        Raises:
            ModelRefused: as `endpoint()`.
        """
        if not self.use_rerank:
            return None
        asked = self.endpoint_for(ModelUse.RERANK)
        if asked is None:
            return None
        return asked.with_model(self.rerank_model or providers.small_model(asked))


def settings_of(owner_id: int) -> MemorySettings:
    """The user's choices, or the defaults, which are not stored."""
    chosen = MemorySettings.objects.filter(owner_id=owner_id).first()
    return chosen or MemorySettings(owner_id=owner_id)


def settings_for_update(owner_id: int) -> MemorySettings:
    """`settings_of`, to be changed: until the transaction ends, others who ask for this wait.

    The lock is on the user's row: there may be no row of settings yet.
    """
    get_user_model().objects.select_for_update(no_key=True).get(pk=owner_id)
    return settings_of(owner_id)

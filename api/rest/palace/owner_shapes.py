"""Requests and responses: costs, settings, palaces."""

from __future__ import annotations

from rest_framework import serializers

from api.rest.palace.shapes import Shape
from llm.models import Usage
from llm.providers import PRESETS
from palace.knowledge.dreaming import MOST_TOKENS, MOST_USD
from palace.models import Proposal
from settings_app.forms import NO_MODEL, OWN_ADDRESS, RECIPES, THIS_SERVER
from settings_app.models import MOST_TOP_K, MemorySettings

PROVIDERS = [THIS_SERVER, NO_MODEL, *PRESETS, OWN_ADDRESS]


class UsageRequest(Shape):
    year = serializers.IntegerField(
        required=False, min_value=2000, max_value=9000, help_text="Defaults to this year."
    )


class Totals(Shape):
    calls = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="The number of failed calls.")
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost_usd = serializers.DecimalField(
        max_digits=16,
        decimal_places=8,
        allow_null=True,
        help_text="Total of the calls with a known price; null if none has one.",
    )
    unpriced = serializers.IntegerField(help_text="The number of calls without a known price.")


class UsageShown(Totals):
    month = serializers.DateField(help_text="Its first day.")
    purpose = serializers.ChoiceField(Usage.Purpose.choices)


class YearShown(Shape):
    year = serializers.IntegerField()
    months = serializers.ListField(
        child=UsageShown(),
        help_text="By month, then purpose; months without calls are omitted.",
    )
    total = Totals()


class Choices(Shape):
    """The settings that can be changed."""

    enabled = serializers.BooleanField(
        required=False, help_text="Recall before each reply, and remember after it."
    )
    top_k = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TOP_K,
        help_text="Drawers recalled for each reply.",
    )
    recipe = serializers.ChoiceField([each.value for each in RECIPES], required=False)
    auto_mine = serializers.BooleanField(required=False)
    use_rerank = serializers.BooleanField(
        required=False, help_text="Rerank the top 20 with a model."
    )
    rerank_model = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Empty: the provider's default."
    )
    provider = serializers.ChoiceField(PROVIDERS, required=False)
    base_url = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Only for the providers azure and address.",
    )
    model = serializers.CharField(required=False, allow_blank=True, max_length=200)
    dreams = serializers.ChoiceField(MemorySettings.Dreams.choices, required=False)
    dream_preferences = serializers.BooleanField(required=False)
    dream_limit_usd = serializers.DecimalField(
        max_digits=8, decimal_places=4, required=False, min_value=0, max_value=MOST_USD
    )
    dream_limit_tokens = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST_TOKENS
    )
    dream_trusted = serializers.ListField(
        child=serializers.ChoiceField(Proposal.Kind.choices),
        required=False,
        help_text="Kinds of proposals that are applied automatically.",
    )
    time_zone = serializers.CharField(
        required=False, allow_blank=True, max_length=60, help_text="An IANA name; empty is UTC."
    )


class SettingsChange(Choices):
    api_key = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=2000,
        write_only=True,
        help_text="The provider's key. Encrypted, never returned; empty keeps the current one.",
    )


class SettingsShown(Choices):
    has_key = serializers.BooleanField(help_text="Whether a provider's key is stored.")
    note = serializers.CharField(
        allow_blank=True, help_text="Why the model cannot be called; empty if it can."
    )
    changed_at = serializers.DateTimeField(allow_null=True)


class PalaceShown(Shape):
    id = serializers.UUIDField()
    user_id = serializers.CharField(allow_null=True, help_text="Null: the owner's own.")
    drawers = serializers.IntegerField()
    created_at = serializers.DateTimeField()

"""What concerns all palaces of an owner: their list, model costs, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags
from api.rest.access import palaces_for
from api.rest.palace import PalaceApiView, shapes
from api.rest.palace.shapes import Shape
from api.rest.parsing import Choice
from llm import usage
from llm.models import Usage
from llm.providers import PRESETS
from palace.knowledge.dreaming import MOST_TOKENS, MOST_USD, DreamForm
from palace.models import DREAMT_KINDS, Drawer, Palace
from settings_app.forms import MOST_USD as MOST_PRICE
from settings_app.forms import PLACES, TimeZoneForm, UsesForm
from settings_app.memory_form import (
    MODEL_FIELDS,
    NO_MODEL,
    OWN_ADDRESS,
    RECIPES,
    THIS_SERVER,
    MemoryForm,
)
from settings_app.models import (
    MOST_TOP_K,
    MemorySettings,
    ModelUse,
    settings_for_update,
    settings_of,
)
from settings_app.pages import no_variables_in_reports
from settings_app.time_zone import zone_named

PROVIDERS = [THIS_SERVER, NO_MODEL, *PRESETS, OWN_ADDRESS]
TAG = ["owner"]
OF_MEMORY = {*MemoryForm.Meta.fields, *MODEL_FIELDS}
OF_DREAMS = {*DreamForm.Meta.fields}
OF_USES = {*UsesForm.Meta.fields}
NOT_AGREED = (
    "The provider is not sent anything yet: its owner is asked first, under Settings → Model & "
    "privacy. A program agrees by sending `uses`."
)


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


def _price(said: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=10,
        decimal_places=PLACES,
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MOST_PRICE,
        help_text=said,
    )


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
    recipe = Choice([each.value for each in RECIPES], required=False)
    auto_mine = serializers.BooleanField(required=False)
    use_rerank = serializers.BooleanField(
        required=False, help_text="Rerank the top 20 with a model."
    )
    rerank_model = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Empty: the provider's default."
    )
    provider = Choice(PROVIDERS, required=False)
    base_url = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Only for the providers azure and address.",
    )
    model = serializers.CharField(required=False, allow_blank=True, max_length=200)
    dreams = Choice(MemorySettings.Dreams.choices, required=False)
    dream_preferences = serializers.BooleanField(required=False)
    dream_limit_usd = serializers.DecimalField(
        max_digits=8, decimal_places=4, required=False, min_value=0, max_value=MOST_USD
    )
    dream_limit_tokens = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST_TOKENS
    )
    dream_trusted = serializers.ListField(
        child=Choice(DREAMT_KINDS),
        required=False,
        help_text="Kinds of proposals that are applied automatically.",
    )
    uses = serializers.ListField(
        child=Choice(ModelUse.choices),
        required=False,
        help_text="What the model may be asked for. A change that has it agrees to send the "
        "provider what these uses need.",
    )
    price_input = _price("What a million tokens that the model reads cost, in US dollars.")
    price_output = _price("What a million tokens that it writes cost, in US dollars.")
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
    awaits_consent = serializers.BooleanField(
        help_text="The provider is sent nothing until the owner agrees, on the page or by `uses`."
    )
    changed_at = serializers.DateTimeField(allow_null=True)


class PalaceShown(Shape):
    id = serializers.UUIDField()
    user_id = serializers.CharField(allow_null=True, help_text="Null: the owner's own.")
    drawers = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class UsageView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}

    @extend_schema(
        tags=TAG,
        parameters=[UsageRequest],
        responses={200: YearShown},
    )
    def get(self, request: Request) -> Response:
        """Model usage and costs of a year, by month and purpose, in the owner's time zone."""
        self.require_all_palaces()
        params = self.read_query(UsageRequest)
        owner = self.key.owner_id
        with timezone.override(zone_named(settings_of(owner).time_zone)):
            year = params.get("year") or timezone.localtime().year
            rows = usage.by_month(owner, year)
        total = sum((row.totals for row in rows), usage.Totals())
        months = [
            {"month": row.month, "purpose": row.purpose, **_totals(row.totals)} for row in rows
        ]
        return Response({"year": year, "months": months, "total": _totals(total)})


def _totals(totals: usage.Totals) -> dict[str, Any]:
    cost = None if totals.is_unknown else f"{totals.cost_usd:.8f}"
    return {**asdict(totals), "cost_usd": cost}


class PalacesView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}

    @extend_schema(
        tags=TAG,
        parameters=[shapes.ListRequest],
        responses={200: shapes.page_of(PalaceShown)},
    )
    def get(self, request: Request) -> Response:
        """List the palaces of the key, oldest first: one for each person."""
        return self.page(palaces_for(self.key), ["pk"], _palaces)


def _palaces(rows: list[Palace]) -> list[dict[str, Any]]:
    kept = Drawer.objects.kept().filter(palace__in=rows).order_by()
    counts = dict(kept.values_list("palace").annotate(Count("pk")))
    return [
        {
            "id": palace.uuid,
            "user_id": palace.subject or None,
            "drawers": counts.get(palace.pk, 0),
            "created_at": palace.created_at,
        }
        for palace in rows
    ]


@method_decorator(no_variables_in_reports, name="dispatch")
class SettingsView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"PATCH": "admin"}

    @extend_schema(tags=["owner"], responses={200: SettingsShown})
    def get(self, request: Request) -> Response:
        """Get the settings; a provider's key is never returned."""
        self.require_all_palaces()
        return etags.answer(request, _shown(settings_of(self.key.owner_id)))

    @extend_schema(
        tags=["owner"],
        request=SettingsChange,
        responses={200: SettingsShown},
    )
    def patch(self, request: Request) -> Response:
        """Change some settings, for all palaces of the owner.

        Choosing another provider or address removes the stored key.
        """
        self.require_all_palaces()
        params = self.read(SettingsChange)
        owner = self.key.owner_id
        with transaction.atomic():
            chosen = settings_for_update(owner)
            etags.check(request, _shown(chosen))
            _change(chosen, params)
        return etags.answer(request, _shown(settings_of(owner)))


def _change(chosen: MemorySettings, params: Mapping[str, Any]) -> None:
    """
    Raises:
        ValidationError: a value is invalid; nothing is stored.
    """
    if OF_MEMORY & params.keys():
        form = MemoryForm(_filled(MemoryForm(instance=chosen), params), instance=chosen)
        _refuse_wrong(form)
        form.store()
    if OF_USES & params.keys():
        uses = UsesForm({**_as_saved(chosen), **params}, instance=chosen)
        _refuse_wrong(uses)
        uses.store(agrees="uses" in params)
    if OF_DREAMS & params.keys():
        dreams = DreamForm(_filled(DreamForm(instance=chosen), params), instance=chosen)
        _refuse_wrong(dreams)
        dreams.store()
    if "time_zone" in params:
        zone = TimeZoneForm({"time_zone": params["time_zone"]})
        _refuse_wrong(zone)
        defaults = {"time_zone": zone.cleaned_data["time_zone"]}
        MemorySettings.objects.update_or_create(owner_id=chosen.owner_id, defaults=defaults)


def _as_saved(chosen: MemorySettings) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in UsesForm.Meta.fields}


def _filled(form: forms.BaseForm, params: Mapping[str, Any]) -> dict[str, Any]:
    """Form data: the current settings, updated by the request."""
    return {**form.initial, **params}


def _refuse_wrong(form: forms.BaseForm) -> None:
    if not form.is_valid():
        raise ValidationError({name: list(map(str, said)) for name, said in form.errors.items()})


def _shown(chosen: MemorySettings) -> dict[str, Any]:
    memory, dreams = MemoryForm(instance=chosen).initial, DreamForm(instance=chosen).initial
    shown = {**memory, **dreams, **_as_saved(chosen), "time_zone": chosen.time_zone}
    return {
        **{name: shown[name] for name in Choices().get_fields()},
        "has_key": chosen.has_key,
        "note": NOT_AGREED if chosen.awaits_consent else chosen.connection().note,
        "awaits_consent": chosen.awaits_consent,
        "changed_at": chosen.changed_at,
    }

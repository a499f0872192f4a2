"""The owner's settings, validated by the forms of the settings page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags
from api.rest.palace import owner_shapes
from api.rest.palace.base import PalaceApiView
from palace.knowledge.dreaming import DreamForm
from settings_app.account_forms import TimeZoneForm
from settings_app.forms import MODEL_FIELDS, MemoryForm
from settings_app.models import MemorySettings, settings_for_update, settings_of
from settings_app.pages import no_variables_in_reports

OF_MEMORY = {*MemoryForm.Meta.fields, *MODEL_FIELDS}
OF_DREAMS = {*DreamForm.Meta.fields}


@method_decorator(no_variables_in_reports, name="dispatch")
class SettingsView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"PATCH": "admin"}

    @extend_schema(tags=["owner"], responses={200: owner_shapes.SettingsShown})
    def get(self, request: Request) -> Response:
        """Get the settings; a provider's key is never returned."""
        self.require_all_palaces()
        return etags.answer(request, _shown(settings_of(self.key.owner_id)))

    @extend_schema(
        tags=["owner"],
        request=owner_shapes.SettingsChange,
        responses={200: owner_shapes.SettingsShown},
    )
    def patch(self, request: Request) -> Response:
        """Change some settings, for all palaces of the owner.

        Choosing another provider or address removes the stored key.
        """
        self.require_all_palaces()
        params = self.read(owner_shapes.SettingsChange)
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
    if OF_DREAMS & params.keys():
        dreams = DreamForm(_filled(DreamForm(instance=chosen), params), instance=chosen)
        _refuse_wrong(dreams)
        dreams.store()
    if "time_zone" in params:
        zone = TimeZoneForm({"time_zone": params["time_zone"]})
        _refuse_wrong(zone)
        defaults = {"time_zone": zone.cleaned_data["time_zone"]}
        MemorySettings.objects.update_or_create(owner_id=chosen.owner_id, defaults=defaults)


def _filled(form: forms.BaseForm, params: Mapping[str, Any]) -> dict[str, Any]:
    """Form data: the current settings, updated by the request."""
    return {**form.initial, **params}


def _refuse_wrong(form: forms.BaseForm) -> None:
    if not form.is_valid():
        raise ValidationError({name: list(map(str, said)) for name, said in form.errors.items()})


def _shown(chosen: MemorySettings) -> dict[str, Any]:
    memory, dreams = MemoryForm(instance=chosen).initial, DreamForm(instance=chosen).initial
    shown = {**memory, **dreams, "time_zone": chosen.time_zone}
    return {
        **{name: shown[name] for name in owner_shapes.Choices().get_fields()},
        "has_key": chosen.has_key,
        "note": chosen.chat_model().note,
        "changed_at": chosen.changed_at,
    }

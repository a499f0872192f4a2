"""The settings of memory and model."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.debug import sensitive_post_parameters

from llm import chat
from llm.errors import LLMError
from llm.providers import Endpoint
from settings_app.forms import MemoryForm
from settings_app.models import MemorySettings, settings_for_update, settings_of
from settings_app.pages import (
    PageRequest,
    no_variables_in_reports,
    signed_in_action,
    signed_in_form,
)

TEMPLATE = "settings_app/settings.html"
NO_MODEL = "There is no model to try: replies quote what you said, word for word."


@dataclass(frozen=True, slots=True)
class Tried:
    """How asking a model went."""

    works: bool
    sentence: str


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_form
def memory_settings(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        chosen = settings_of(request.user.pk)
        return _page(request, MemoryForm(instance=chosen), chosen)
    with transaction.atomic():
        form = MemoryForm(request.POST, instance=settings_for_update(request.user.pk))
        if form.is_valid():
            form.store()
    if not form.is_valid():
        return _page(request, form, settings_of(request.user.pk), status=400)
    messages.success(request, _saved(form))
    return redirect("settings")


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_action
def try_model(request: PageRequest) -> HttpResponse:
    """Ask the model that is in the form, saved or not, and say how it went."""
    form = MemoryForm(request.POST, instance=settings_of(request.user.pk))
    tried = _tried(form, request.user.pk)
    if request.htmx:
        return render(request, f"{TEMPLATE}#trial", {"tried": tried})
    return _page(request, form, settings_of(request.user.pk), tried=tried)


@signed_in_action
def remove_key(request: PageRequest) -> HttpResponse:
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        if chosen.has_key:
            chosen.set_key("")
            chosen.save(update_fields=["sealed_key", "changed_at"])
    if request.htmx:
        form = MemoryForm(instance=chosen)
        return render(request, f"{TEMPLATE}#key", {"form": form, "removed": True})
    messages.success(request, "The key was removed.")
    return redirect("settings")


def _page(
    request: PageRequest,
    form: MemoryForm,
    saved: MemorySettings,
    *,
    status: int = 200,
    tried: Tried | None = None,
) -> HttpResponse:
    context = {"form": form, "in_use": saved.chat_model(), "tried": tried}
    response = render(request, TEMPLATE, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _saved(form: MemoryForm) -> str:
    if form.ignores_key:
        return "Saved. The key was not kept, as no provider of your own is chosen."
    if form.drops_key:
        return "Saved. The key of the provider before was removed."
    return "Saved."


def _tried(form: MemoryForm, owner_id: int) -> Tried:
    if form.model_errors:
        return Tried(works=False, sentence=" ".join(form.model_errors))
    candidate: MemorySettings = form.instance
    try:
        endpoint = candidate.endpoint()
        if endpoint is None:
            return Tried(works=False, sentence=NO_MODEL)
        return Tried(works=True, sentence=_asked(endpoint, owner_id))
    except LLMError as error:
        return Tried(works=False, sentence=str(error))


def _asked(endpoint: Endpoint, owner_id: int) -> str:
    started = time.monotonic()
    chat.try_out(endpoint, owner_id=owner_id)
    return f"{endpoint} works: it answered in {time.monotonic() - started:.1f} s."

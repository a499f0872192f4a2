"""The settings of memory, and of the model that is connected.

The page of memory shows the stages of recall with their measured costs and gains.
`manage.py ablate --stages --write` measures and stores them in a file, because settings must not
import recall.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.debug import sensitive_post_parameters

from llm import chat, sent
from llm.errors import LLMError
from llm.providers import Endpoint
from settings_app.memory_form import ON_GENERAL_PAGE, ON_MODEL_PAGE, MemoryForm
from settings_app.models import MemorySettings, settings_for_update, settings_of
from settings_app.pages import (
    PageRequest,
    no_variables_in_reports,
    refuse_stale,
    signed_in_action,
    signed_in_form,
    stored_values,
)

MEASURED = Path(__file__).with_name("recall_stages.json")
GENERAL = "settings_app/settings.html"
MODEL = "settings_app/model.html"
NO_MODEL = "There is no model to try: replies quote what you said, word for word."


@dataclass(frozen=True, slots=True)
class StageShown:
    """
    Attributes:
        is_on: Whether the default recipe has it.
        ms: What it adds to a recall, in milliseconds; None if it was not measured.
        points: What it adds to the share of the messages found, in points of a hundred.
    """

    name: str
    help: str
    is_on: bool
    ms: float | None = None
    points: float | None = None

    @property
    def costs(self) -> str:
        """Milliseconds; what is measured as less than one is no more than the measuring is off."""
        if self.ms is None:
            return ""
        return f"{self.ms:.0f}" if self.ms >= 1 else "under 1"

    @property
    def gives(self) -> str:
        """Points; a minus is one that is printed as such."""
        return "" if self.points is None else f"{self.points:z.1f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        questions: How many were asked.
        ms: The median recall with all stages that are on.
    """

    questions: int
    ms: float
    stages: tuple[StageShown, ...]


@cache
def measured_stages() -> Measured:
    found = json.loads(MEASURED.read_text(encoding="utf-8"))
    stages = (
        StageShown(row["name"], row["help"], row["on"], row.get("ms"), row.get("points"))
        for row in found["stages"]
    )
    return Measured(found["questions"], found["ms"], tuple(stages))


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of testing a model."""

    works: bool
    sentence: str


@signed_in_form
def memory_settings(request: PageRequest) -> HttpResponse:
    """The page of memory's settings."""
    if request.method != "POST":
        return _page(request, GENERAL, MemoryForm(instance=settings_of(request.user.pk)))
    form = _saved_form(request, ON_GENERAL_PAGE)
    if not form.is_valid():
        return _page(request, GENERAL, form, status=400)
    messages.success(request, "Saved.")
    return redirect("settings")


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_form
def model_settings(request: PageRequest) -> HttpResponse:
    """The page of provider, model and key. A new provider is sent nothing without consent."""
    if request.method != "POST":
        return _page(request, MODEL, MemoryForm(instance=settings_of(request.user.pk)))
    form = _saved_form(request, ON_MODEL_PAGE)
    if not form.is_valid():
        return _page(request, MODEL, form, status=400)
    if form.moves and form.asks_elsewhere:
        messages.success(request, _saved(form, "Saved, and not connected yet."))
        return redirect("model_uses")
    messages.success(request, _saved(form, "Saved."))
    return redirect("model_settings")


def _saved_form(request: PageRequest, names: Sequence[str]) -> MemoryForm:
    """The form with these fields as posted and all others as saved; stored if it is valid."""
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        stored = stored_values(MemoryForm(instance=chosen), names)
        form = MemoryForm(_posted(request.POST, chosen, names), instance=chosen)
        refuse_stale(request, form, stored, names)
        if form.is_valid():
            form.store()
    return form


def _posted(posted: QueryDict, chosen: MemorySettings, names: Sequence[str]) -> dict[str, Any]:
    form = MemoryForm(instance=chosen)
    others = {name: value for name, value in form.initial.items() if name not in names}
    return {**others, **{name: posted[name] for name in names if name in posted}}


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_action
def try_model(request: PageRequest) -> HttpResponse:
    """Ask the model that is in the form, saved or not, and say how it went."""
    chosen = settings_of(request.user.pk)
    form = MemoryForm(_posted(request.POST, chosen, ON_MODEL_PAGE), instance=chosen)
    tried = _tried(form, request.user.pk)
    if request.htmx:
        return render(request, f"{MODEL}#trial", {"tried": tried})
    return _page(request, MODEL, form, tried=tried)


@signed_in_action
def remove_key(request: PageRequest) -> HttpResponse:
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        if chosen.has_key:
            chosen.set_key("")
            chosen.save(update_fields=["sealed_key", "changed_at"])
    if request.htmx:
        form = MemoryForm(instance=chosen)
        return render(request, f"{MODEL}#key", {"form": form, "removed": True})
    messages.success(request, "The key was removed.")
    return redirect("model_settings")


def _page(
    request: PageRequest,
    template: str,
    form: MemoryForm,
    *,
    status: int = 200,
    tried: Tried | None = None,
) -> HttpResponse:
    # The form may have changed its own copy.
    saved = settings_of(request.user.pk) if form.is_bound else form.instance
    names = ON_MODEL_PAGE if template == MODEL else ON_GENERAL_PAGE
    context = {
        "form": form,
        "saved": saved,
        "in_use": saved.connection(),
        "tried": tried,
        "measured": measured_stages(),
        "stored": stored_values(MemoryForm(instance=saved), names),
    }
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _saved(form: MemoryForm, said: str) -> str:
    if form.ignores_key:
        return f"{said} The key was not kept, as no provider of your own is chosen."
    if form.drops_key:
        return f"{said} The key of the provider before was removed."
    return said


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
    with sent.made_of([f"{sent.INSTRUCTIONS}:test"]):
        chat.try_out(endpoint, owner_id=owner_id)
    return f"{endpoint} works: it answered in {time.monotonic() - started:.1f} s."

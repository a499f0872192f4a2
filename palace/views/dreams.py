"""Dreams: the estimate, the button that starts one, its progress, and the settings."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from kombu.exceptions import OperationalError

from language.errors import PalaceError
from palace.knowledge.dreaming import (
    DreamForm,
    Estimate,
    dream_of,
    estimate,
    is_dreaming,
    read_directives,
)
from palace.models import Activity, DreamMark, Palace
from settings_app.models import MemorySettings, ModelUse, settings_for_update, settings_of
from settings_app.pages import (
    PageRequest,
    refuse_stale,
    render_page_or_part,
    signed_in_form,
    stored_values,
)

TEMPLATE = "palace/dream_settings.html"
NEVER = "never"
QUEUE_AWAY = (
    "The queue (Redis) does not answer at the moment, so nothing was begun. Try again in a minute."
)
IDLE, QUEUED, DREAMING = "idle", "queued", "dreaming"


@dataclass(frozen=True, slots=True)
class DreamStatus:
    """
    Attributes:
        state: `idle`, `queued` or `dreaming`.
        last: The record of the last dream that ended.
        since: When the last dream before the requested one ended.
        has_come: Whether the requested dream has ended.
        estimate: The size and cost of a dream; None while one runs.
        error: Why no dream can start.
    """

    state: str
    last: Activity | None
    since: str
    has_come: bool
    chosen: MemorySettings
    estimate: Estimate | None = None
    error: str = ""

    @property
    def is_moving(self) -> bool:
        return self.state != IDLE

    @property
    def prefers_model(self) -> bool:
        return self.chosen.dreams == MemorySettings.Dreams.MODEL

    @property
    def poll(self) -> str:
        """The URL to poll; it answers 204 while the state is unchanged."""
        asked = {"since": self.since or NEVER, "seen": self.state}
        return f"{reverse('dream_now')}?{urlencode(asked)}"

    @property
    def said(self) -> str:
        """For screen readers; it changes only with the state."""
        if self.state == DREAMING:
            return "Your palace is dreaming."
        if self.state == QUEUED:
            return "The dream waits for its turn."
        return self.last.summary if self.has_come and self.last else ""


@signed_in_form
def dream_now(request: PageRequest) -> HttpResponse:
    """The estimate or the progress; POST starts a dream."""
    palace = Palace.objects.own(request.user)
    if request.method != "POST":
        seen = _seen(palace, request.GET.get("since", ""))
        if request.htmx and seen.is_moving and request.GET.get("seen") == seen.state:
            return HttpResponse(status=204)
        return _show(request, seen)
    # A running dream has its mark already.
    since = "" if is_dreaming(palace) else _mark(palace)
    wrong = _begin(palace, with_model=request.POST.get("with") == "model")
    if wrong:
        return _show(request, _seen(palace, "", wrong), status=400)
    if request.htmx:
        return _show(request, _seen(palace, since))
    return redirect(f"{reverse('dream_now')}?{urlencode({'since': since or NEVER})}")


def _show(request: PageRequest, seen: DreamStatus, *, status: int = 200) -> HttpResponse:
    context = {"dream": seen}
    return render_page_or_part(request, "palace/dream.html", "dream", context, status=status)


def _begin(palace: Palace, *, with_model: bool) -> str:
    """Queue a dream unless one runs; returns an error message, or nothing."""
    if is_dreaming(palace):
        return ""
    try:
        read_directives()
        dream_of.delay(palace.pk, with_model=with_model)
    except PalaceError as error:
        return str(error)
    except OperationalError:
        return QUEUE_AWAY
    return ""


def _seen(palace: Palace, since: str, error: str = "") -> DreamStatus:
    mark = _mark(palace)
    state = DREAMING if is_dreaming(palace) else QUEUED if since == mark else IDLE
    before = None
    if state == IDLE:
        try:
            before = estimate(palace)
        except PalaceError as wrong:
            error = error or str(wrong)
    has_come = bool(since) and state == IDLE
    last = Activity.objects.filter(palace=palace, kind=Activity.Kind.DREAMT).first()
    chosen = settings_of(palace.owner_id)
    return DreamStatus(state, last, since, has_come, chosen, before, error)


def _mark(palace: Palace) -> str:
    """When the last dream ended, which identifies it."""
    mark = DreamMark.objects.filter(palace=palace).first()
    return mark.dreamt_at.isoformat() if mark and mark.dreamt_at else NEVER


@signed_in_form
def dream_settings(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, DreamForm(instance=settings_of(request.user.pk)))
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        stored = stored_values(DreamForm(instance=chosen))
        form = DreamForm(request.POST, instance=chosen)
        refuse_stale(request, form, stored)
        if form.is_valid():
            form.store()
    if not form.is_valid():
        return _page(request, form, status=400)
    messages.success(request, "Saved.")
    return redirect("dream_settings")


def _page(request: PageRequest, form: DreamForm, *, status: int = 200) -> HttpResponse:
    # The saved model, not the one in the form.
    saved = settings_of(request.user.pk)
    context = {
        "form": form,
        "in_use": saved.chat_model(ModelUse.DREAMS),
        "stored": stored_values(DreamForm(instance=saved)),
    }
    return render(request, TEMPLATE, context, status=status)

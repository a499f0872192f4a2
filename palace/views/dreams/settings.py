"""The settings of dreams. They are here, and not with the others, as they know of proposals."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render

from palace.views.dreams.forms import DreamForm
from settings_app.access import PageRequest, signed_in_form
from settings_app.models import held_settings, settings_of

TEMPLATE = "palace/dream_settings.html"


@signed_in_form
def dream_settings(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, DreamForm(instance=settings_of(request.user.pk)))
    with transaction.atomic():
        form = DreamForm(request.POST, instance=held_settings(request.user.pk))
        if form.is_valid():
            form.store()
    if not form.is_valid():
        return _page(request, form, status=400)
    messages.success(request, "Saved.")
    return redirect("dream_settings")


def _page(request: PageRequest, form: DreamForm, *, status: int = 200) -> HttpResponse:
    # What was saved, not what is in the form.
    in_use = settings_of(request.user.pk).chat_model()
    return render(request, TEMPLATE, {"form": form, "in_use": in_use}, status=status)

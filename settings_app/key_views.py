"""The page of keys: make one, see which there are and what they changed, revoke one."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from settings_app.access import PageRequest, signed_in_form
from settings_app.api_keys import ApiKey
from settings_app.audit import KEPT_FOR, AuditLine
from settings_app.key_forms import KeyForm
from settings_app.reports import no_variables_in_reports

TEMPLATE = "settings_app/keys.html"
LINES_A_PAGE = 25
MADE_BEFORE = "That key was made already, and is not shown again. Revoke it if you did not note it."


@no_variables_in_reports
@signed_in_form
def api_keys(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, KeyForm(request.user))
    form = KeyForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, form, status=400)
    made = form.make_key()
    if made is None:
        messages.warning(request, MADE_BEFORE)
        return redirect("api_keys")
    key, text = made
    # In this answer, and nowhere else: it is not stored, not even by the browser.
    return render(request, "settings_app/key_made.html", {"key": key, "text": text})


@signed_in_form
def revoke_key(request: PageRequest, uuid: UUID) -> HttpResponse:
    key = get_object_or_404(ApiKey, owner=request.user, uuid=uuid)
    if request.method != "POST":
        return render(request, "settings_app/key_revoke.html", {"key": key})
    key.revoke()
    messages.success(request, f"“{key.name}” is revoked: it opens nothing any more.")
    return redirect("api_keys")


def _page(request: PageRequest, form: KeyForm, *, status: int = 200) -> HttpResponse:
    keys = ApiKey.objects.filter(owner=request.user)
    lines = AuditLine.objects.filter(owner=request.user).select_related("key")
    context = {
        "form": form,
        # Those in use first, the newest of them at the top.
        "keys": keys.order_by(F("revoked_at").asc(nulls_first=True), "-pk"),
        "lines": Paginator(lines.order_by("-at", "-pk"), LINES_A_PAGE).get_page(
            request.GET.get("page")
        ),
        "kept_days": KEPT_FOR.days,
    }
    return render(request, TEMPLATE, context, status=status)

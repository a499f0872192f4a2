"""The palace at a glance, and the search box."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect

from palace.aaak import Pointer
from palace.errors import BadPointer, PalaceError
from palace.models import Drawer, Palace
from palace.recall.recall import recall
from palace.recall.request import RecallRequest
from palace.views.counts import totals
from palace.views.hits import explained, hit_rows
from palace.views.inbox import waiting_count
from palace.views.page_queries import find_by_pointer, wing_rows
from palace.views.recent_activity import lately
from palace.views.rendering import render_page_or_part
from settings_app.access import PageRequest, signed_in_page

HITS_SHOWN = 20


@signed_in_page
def memory(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    query = request.GET.get("q")
    if query is None:
        return show_memory(request, palace)
    drawer = _by_pointer(palace, query)
    if drawer is not None:
        if request.htmx:
            return HttpResponseClientRedirect(drawer.get_absolute_url())
        return redirect(drawer)
    try:
        found = recall(palace, RecallRequest(query, top_k=HITS_SHOWN))
    except PalaceError as error:
        return show_memory(request, palace, query=query, error=str(error))
    return show_memory(
        request,
        palace,
        query=query,
        found=found,
        hits=hit_rows(found.hits, query),
        signals=explained(found.hits),
    )


def show_memory(request: PageRequest, palace: Palace, **search: Any) -> HttpResponse:
    """The page with the outcome of a search, if there was one; `error` goes beside the field."""
    wings = wing_rows(palace)
    context = {
        **search,
        "wings": wings,
        "totals": totals(wings),
        "lately": lately(palace),
        "proposals": waiting_count(palace),
    }
    status = 400 if "error" in search else 200
    return render_page_or_part(request, "palace/memory.html", "body", context, status=status)


def _by_pointer(palace: Palace, query: str) -> Drawer | None:
    """A pointer pasted into the search box leads straight to its drawer."""
    try:
        return find_by_pointer(palace, Pointer.parse(query))
    except BadPointer:
        return None

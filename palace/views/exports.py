"""One's own data: what there is of it, and all of it as a file."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseBase

from palace.models import Drawer, Entity, Episode, Fact, Palace, Room
from palace.transfer.export.download import download
from settings_app.access import PageRequest, signed_in_action, signed_in_page
from settings_app.rendering import render_page_or_part


@signed_in_page
def data_settings(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    drawers = Drawer.objects.within(palace)
    held = {
        "rooms": Room.objects.within(palace).count(),
        "drawers": drawers.count(),
        "trashed": drawers.trashed().count(),
        "entities": Entity.objects.filter(palace=palace).count(),
        "facts": Fact.objects.within(palace).active().count(),
        "episodes": Episode.objects.within(palace).count(),
    }
    return render_page_or_part(request, "palace/data_settings.html", "main", {"held": held})


@signed_in_action
def export_palace(request: PageRequest) -> HttpResponseBase:
    """Posted to, so that no link elsewhere can set somebody's browser to work."""
    return download(request, Palace.objects.own(request.user))

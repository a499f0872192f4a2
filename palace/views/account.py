"""A user's data: the export of the palace, and the deletion of the account with all palaces."""

from __future__ import annotations

import logging

from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.models import Count, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError as QueueAway

from isolation import row_access
from palace.curation import deletion
from palace.models import Drawer, Entity, Episode, Fact, Palace, Room
from palace.storage import palace_quota, usage_of
from palace.transfer.export import download
from settings_app.accounts import Receipt
from settings_app.api_keys import ApiKey
from settings_app.forms import LeavingForm, too_many_attempts
from settings_app.pages import (
    PageRequest,
    no_variables_in_reports,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)
from settings_app.secrets import Unreadable
from settings_app.throttling import REST_S

logger = logging.getLogger(__name__)
# Up to so many drawers are deleted within the request; the worker deletes larger palaces.
AT_ONCE = 5000
# Palaces whose use is shown.
MOST_LISTED = 100


@no_variables_in_reports
@sensitive_post_parameters()
@signed_in_form
def delete_account(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, LeavingForm(request, request.user))
    form = LeavingForm(request, request.user, request.POST)
    if not form.is_valid():
        return _page(request, form, status=429 if too_many_attempts(form) else 400)
    with row_access.open_account(request.user.pk):
        few = Drawer.objects.filter(palace__owner=request.user)[: AT_ONCE + 1].count() <= AT_ONCE
    receipt = deletion.close_account(request.user)
    logout(request)
    if not (few and _deleted(receipt.user_id)):
        _queue()
    return redirect("account_deleted", receipt.sealed())


@never_cache
@require_safe
def account_deleted(request: HttpRequest, receipt: str) -> HttpResponse:
    """The rows that were deleted, and whether deletion is finished; `?format=json` for programs."""
    try:
        read = Receipt.unsealed(receipt)
    except Unreadable:
        raise Http404 from None
    if request.GET.get("format") == "json":
        state = {
            "closed_at": read.closed_at.isoformat(),
            "finished": read.is_finished,
            "rows": read.rows,
        }
        return JsonResponse(state)
    context = {"receipt": read, "rows": _by_number(read.rows)}
    return render(request, "settings_app/account_deleted.html", context)


def _page(request: PageRequest, form: LeavingForm, *, status: int = 200) -> HttpResponse:
    with row_access.open_account(request.user.pk):
        context = {"form": form, "rows": _held_by(request.user)}
    response = render(request, "settings_app/account_delete.html", context, status=status)
    if status == 429:
        response.headers["Retry-After"] = str(REST_S)
    return response


def _held_by(user: User) -> list[tuple[str, int]]:
    """What a person knows of what is theirs, without counting what is derived from it."""
    palaces = list(Palace.objects.filter(owner=user).values_list("pk", flat=True))
    rooms = Room.objects.filter(palace__in=palaces)
    size = rooms.aggregate(rooms=Count("pk"), messages=Sum("stored_count", default=0))
    counts = (
        ("messages, word for word", size["messages"]),
        ("conversations in your palaces", size["rooms"]),
        ("facts", Fact.objects.filter(palace__in=palaces).active().count()),
        ("people and things", Entity.objects.filter(palace__in=palaces).count()),
        ("summaries", Episode.objects.filter(palace__in=palaces).count()),
        ("palaces", len(palaces)),
        ("keys for programs", ApiKey.objects.filter(owner=user).count()),
    )
    return [(kind, count) for kind, count in counts if count]


def _deleted(user_id: int) -> bool:
    try:
        return deletion.delete_account(user_id)
    except DatabaseError:
        # The account is closed; the receipt says that its deletion is not finished.
        logger.exception("The closed account %s is left to the worker.", user_id)
        return False


def _queue() -> None:
    try:
        deletion.delete_closed_accounts.delay()
    except QueueAway:
        logger.warning("A closed account is deleted once the queue (Redis) answers again.")


def _by_number(rows: dict[str, int]) -> list[tuple[str, int]]:
    """The largest count first, without the account itself."""
    return sorted(
        ((kind, count) for kind, count in rows.items() if kind != "users"),
        key=lambda pair: (-pair[1], pair[0]),
    )


@signed_in_page
def data_settings(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    sizes = Room.objects.within(palace).sizes()
    counts = {
        "rooms": sizes["rooms"],
        "drawers": sizes["stored"],
        "trashed": sizes["stored"] - sizes["kept"],
        "entities": Entity.objects.filter(palace=palace).count(),
        "facts": Fact.objects.within(palace).active().count(),
        "episodes": Episode.objects.within(palace).count(),
    }
    with row_access.open_account(request.user.pk):
        palaces = list(Palace.objects.filter(owner=request.user).order_by("subject")[:MOST_LISTED])
        used = [(each.subject, usage_of(each)) for each in palaces]
    context = {"counts": counts, "used": used, "quota": palace_quota()}
    return render_page_or_part(request, "palace/data_settings.html", "main", context)


@signed_in_action
def export_palace(request: PageRequest) -> HttpResponseBase:
    """By POST, so that no link on another site starts an export."""
    return download(request, Palace.objects.own(request.user))

"""The pages of webhooks: add one, see what it was told, try it, stop it, delete it."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_variables

from palace.errors import BadInput
from palace.models import Webhook
from palace.tasks import deliver_webhooks
from palace.views.webhook_forms import WebhookForm
from palace.webhooks import registration
from palace.webhooks.delivery import KEPT_FOR
from settings_app.access import PageRequest, signed_in_action, signed_in_form, signed_in_page
from settings_app.reports import no_variables_in_reports

# Of the latest deliveries, so many are shown.
LATEST = 50


@no_variables_in_reports
@sensitive_variables()
@signed_in_form
def webhooks(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, WebhookForm())
    form = WebhookForm(request.POST)
    made = form.add_for(request.user.pk) if form.is_valid() else None
    if made is None:
        return _page(request, form, status=400)
    webhook, secret = made
    # In this answer, and nowhere else: it is stored sealed, and not even kept by the browser.
    context = {"webhook": webhook, "secret": secret}
    return render(request, "palace/webhook_made.html", context)


@signed_in_page
def webhook_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    webhook = _one(request, uuid)
    context = {
        "webhook": webhook,
        "deliveries": webhook.deliveries.select_related("palace").order_by("-pk")[:LATEST],
        "kept_days": KEPT_FOR.days,
    }
    return render(request, "palace/webhook_detail.html", context)


@signed_in_action
def webhook_try(request: PageRequest, uuid: UUID) -> HttpResponse:
    webhook = _one(request, uuid)
    try:
        registration.try_out(webhook)
    except BadInput as error:
        messages.error(request, str(error))
    else:
        deliver_webhooks.delay()
        messages.success(request, "A test is on its way. Load this page anew to see if it arrived.")
    return redirect("webhook_detail", uuid)


@signed_in_action
def webhook_switch(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Stop it, or let it go on."""
    webhook = _one(request, uuid)
    if request.POST.get("enabled") == "1":
        registration.enable(webhook)
        messages.success(request, "It is told again from now on, what still waited first.")
    else:
        registration.disable(webhook)
        messages.success(request, "It is told nothing more.")
    return redirect("webhook_detail", uuid)


@signed_in_form
def webhook_delete(request: PageRequest, uuid: UUID) -> HttpResponse:
    webhook = _one(request, uuid)
    if request.method != "POST":
        return render(request, "palace/webhook_delete.html", {"webhook": webhook})
    webhook.delete()
    messages.success(request, "The webhook is deleted.")
    return redirect("webhooks")


def _one(request: PageRequest, uuid: UUID) -> Webhook:
    return get_object_or_404(Webhook, owner=request.user, uuid=uuid)


def _page(request: PageRequest, form: WebhookForm, *, status: int = 200) -> HttpResponse:
    known = Webhook.objects.filter(owner=request.user).order_by("-pk")
    context = {"form": form, "webhooks": known}
    return render(request, "palace/webhooks.html", context, status=status)

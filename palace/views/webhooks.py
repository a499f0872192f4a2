"""The pages of webhooks: add one, see its deliveries, test it, disable it, delete it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_variables

from isolation import row_access
from language.errors import BadInput
from palace.models import Webhook
from palace.webhooks import MOST_URL_CHARS, add, disable, enable, replace_secret, try_out
from palace.webhooks.delivery import KEPT_FOR, deliver_webhooks
from settings_app.forms import ALL, PalaceChoiceForm
from settings_app.pages import (
    PageRequest,
    is_stale,
    no_variables_in_reports,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)

# The number of deliveries shown.
LATEST = 50
ADDED_BEFORE = (
    "That webhook was added already, and its secret is not shown again. Give it a new one if you "
    "did not note it."
)
REPLACED_BEFORE = (
    "The secret was replaced already, and is not shown again. If you did not note it, replace it "
    "once more."
)


@no_variables_in_reports
@sensitive_variables()
@signed_in_form
def webhooks(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, WebhookForm())
    form = WebhookForm(request.POST)
    try:
        made = form.add_for(request.user.pk) if form.is_valid() else None
    except IntegrityError:
        messages.warning(request, ADDED_BEFORE)
        return redirect("webhooks")
    if made is None:
        return _page(request, form, status=400)
    webhook, secret = made
    # The only response that shows the secret: it is stored encrypted, and browsers do not cache it.
    context = {"webhook": webhook, "secret": secret}
    return render(request, "palace/webhook_made.html", context)


@signed_in_page
def webhook_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    webhook = _one(request, uuid)
    deliveries = webhook.deliveries.select_related("palace").order_by("-pk")
    # They tell of all palaces of its owner.
    with row_access.open_account(request.user.pk):
        latest = list(deliveries[:LATEST])
    context = {
        "webhook": webhook,
        "deliveries": latest,
        "kept_days": KEPT_FOR.days,
    }
    return render(request, "palace/webhook_detail.html", context)


@signed_in_action
def webhook_try(request: PageRequest, uuid: UUID) -> HttpResponse:
    webhook = _one(request, uuid)
    try:
        try_out(webhook)
    except BadInput as error:
        messages.error(request, str(error))
    else:
        deliver_webhooks.delay()
        messages.success(request, "Test sent. Reload this page to see its delivery.")
    return redirect("webhook_detail", uuid)


@signed_in_action
def webhook_switch(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Enable or disable it."""
    webhook = _one(request, uuid)
    if request.POST.get("enabled") == "1":
        enable(webhook)
        messages.success(request, "Webhook enabled; pending deliveries go first.")
    else:
        disable(webhook)
        messages.success(request, "Webhook disabled.")
    return redirect("webhook_detail", uuid)


@no_variables_in_reports
@sensitive_variables()
@signed_in_action
def webhook_secret(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Replace the secret; the response shows the new one, once."""
    with transaction.atomic():
        rows = Webhook.objects.select_for_update()
        webhook = get_object_or_404(rows, owner=request.user, uuid=uuid)
        if is_stale(request, webhook.sealed_secret):
            messages.warning(request, REPLACED_BEFORE)
            return redirect("webhook_detail", uuid)
        secret = replace_secret(webhook)
    context = {"webhook": webhook, "secret": secret, "is_replaced": True}
    return render(request, "palace/webhook_made.html", context)


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


class WebhookForm(PalaceChoiceForm):
    """The URL, the events and the palaces of a webhook.

    `webhook_id` is made with the form: sent twice, it still adds one.
    """

    field_order = ("webhook_id", "url", "events", "palaces", "subject")

    webhook_id = forms.UUIDField(widget=forms.HiddenInput, required=False)
    url = forms.CharField(
        label="Address",
        max_length=MOST_URL_CHARS,
        help_text="Where your program receives POST requests, such as https://example.org/loci.",
        error_messages={"required": "Write the address that the events are sent to."},
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )

    def __init__(self, data: Any = None) -> None:
        usual = Webhook.Event.values[:2]
        initial = {"webhook_id": uuid4(), "events": usual, "palaces": ALL}
        super().__init__(data, initial=initial)

    def add_for(self, owner_id: int) -> tuple[Webhook, str] | None:
        """The webhook and its secret; None, with an error at the URL, if it is refused.

        Raises:
            IntegrityError: this form has added it before.
        """
        given = self.cleaned_data
        try:
            return add(
                owner_id,
                given["url"],
                given["events"],
                self.chosen_subject(),
                webhook_id=given["webhook_id"],
            )
        except BadInput as error:
            self.add_error("url", str(error).removeprefix("url: "))
            return None

"""The pages of webhooks: add one, see what it was told, try it, stop it, delete it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_variables

from isolation import reach
from palace.errors import BadInput
from palace.models import Webhook
from palace.tasks import deliver_webhooks
from palace.webhooks import addresses, registration
from palace.webhooks.delivery import KEPT_FOR
from settings_app.access import PageRequest, signed_in_action, signed_in_form, signed_in_page
from settings_app.reports import no_variables_in_reports

SUBJECT_NEEDED = "Write the name by which your program calls this person, its user_id."
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
    deliveries = webhook.deliveries.select_related("palace").order_by("-pk")
    # They tell of all palaces of its owner.
    with reach.open_person(request.user.pk):
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


class WebhookForm(forms.Form):
    """Where to tell, of what, and of whose palace."""

    class Palaces:
        ALL, OWN, ONE = "all", "own", "one"

    url = forms.CharField(
        label="Address",
        max_length=addresses.MOST_CHARS,
        help_text="Your program's, such as https://example.org/told. It is sent POST requests.",
        error_messages={"required": "Write the address that is to be told."},
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Tell it of",
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one, or there is nothing to tell."},
    )
    palaces = forms.ChoiceField(
        label="Where?",
        choices=[
            (Palaces.ALL, "In all of your palaces: yours and those of your program's people"),
            (Palaces.OWN, "In your own palace only"),
            (Palaces.ONE, "In the palace of one person only"),
        ],
        widget=forms.RadioSelect,
    )
    # To the letter, as programs send it.
    subject = forms.CharField(
        label="That person's user_id",
        max_length=200,
        required=False,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: Any = None) -> None:
        initial = {"events": Webhook.Event.values[:2], "palaces": self.Palaces.ALL}
        super().__init__(data, initial=initial)

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if cleaned.get("palaces") == self.Palaces.ONE and not cleaned.get("subject", "").strip():
            self.add_error("subject", ValidationError(SUBJECT_NEEDED))
        return cleaned

    def add_for(self, owner_id: int) -> tuple[Webhook, str] | None:
        """The webhook and its secret; None, with an error beside the address, if it is refused."""
        given = self.cleaned_data
        which: dict[str, str | None] = {self.Palaces.ALL: None, self.Palaces.OWN: ""}
        subject = which.get(given["palaces"], given["subject"])
        try:
            return registration.add(owner_id, given["url"], given["events"], subject)
        except BadInput as error:
            self.add_error("url", str(error).removeprefix("url: "))
            return None

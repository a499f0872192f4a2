"""The page of API keys: make and revoke keys, and see what they changed."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.safestring import mark_safe

from isolation import row_access
from settings_app.account_forms import ALL, PalaceChoiceForm
from settings_app.api_keys import ApiKey, issue
from settings_app.audit import KEPT_FOR, AuditLine
from settings_app.pages import PageRequest, no_variables_in_reports, signed_in_form

# Names of people that the form suggests.
MOST_SUGGESTED = 200
SCOPE_NEEDED = "Choose at least one: a key that may do nothing is of no use."
DAMAGED = "This form was not complete. Reload the page, then try again."
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
    # Only in this response, which the browser does not store either.
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
    # Connected apps have a page of their own.
    keys = ApiKey.objects.filter(owner=request.user, connected_app=None)
    lines = AuditLine.objects.filter(owner=request.user).select_related("key")
    context = {
        "form": form,
        # Usable keys first, newest first.
        "keys": keys.order_by(F("revoked_at").asc(nulls_first=True), "-pk"),
        "lines": Paginator(lines.order_by("-at", "-pk"), LINES_A_PAGE).get_page(
            request.GET.get("page")
        ),
        "kept_days": KEPT_FOR.days,
    }
    return render(request, TEMPLATE, context, status=status)


class KeyForm(PalaceChoiceForm):
    """A key's name, scopes, palaces and expiry.

    `key_id` is made with the form: sent twice, it still makes one key.
    """

    field_order = ("key_id", "name", "scopes", "palaces", "subject", "trusts_open_webui", "expires")

    key_id = forms.UUIDField(
        widget=forms.HiddenInput, error_messages={"required": DAMAGED, "invalid": DAMAGED}
    )
    name = forms.CharField(
        label="What is it for?",
        max_length=100,
        help_text="A name to recognise it by, such as “notes on my laptop”.",
        error_messages={"required": "Give it a name, so that you know it again."},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="What may it do?",
        choices=ApiKey.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": SCOPE_NEEDED},
    )
    trusts_open_webui = forms.BooleanField(
        label="Open WebUI says who is talking, and in which chat",
        required=False,
        # On a narrow screen the name breaks between its words.
        help_text=mark_safe(
            "Each of its users then has a palace of their own. It has to send their names: start "
            "it with ENABLE_<wbr>FORWARD_<wbr>USER_<wbr>INFO_<wbr>HEADERS=true."
        ),
    )
    expires = forms.TypedChoiceField(
        label="Until when?",
        coerce=int,
        empty_value=None,
        required=False,
        choices=[
            ("", "Until it is revoked"),
            (7, "For a week"),
            (30, "For 30 days"),
            (90, "For 90 days"),
            (365, "For a year"),
        ],
    )

    def __init__(self, owner: User, data: Any = None) -> None:
        usual = [ApiKey.Scope.READ, ApiKey.Scope.WRITE]
        initial = {"key_id": uuid.uuid4(), "scopes": usual, "palaces": ALL}
        super().__init__(data, initial=initial)
        self.fields["subject"].widget.attrs["list"] = "people"
        self.owner = owner

    def people(self) -> list[str]:
        """The names of people that the owner's programs use."""
        palaces = self.owner.palaces.exclude(subject="").order_by("subject")
        with row_access.open_account(self.owner.pk):
            return list(palaces.values_list("subject", flat=True)[:MOST_SUGGESTED])

    def make_key(self) -> tuple[ApiKey, str] | None:
        """Make a key; returns it with its text, or None if this form has made it before."""
        given = self.cleaned_data
        try:
            with transaction.atomic():
                return issue(
                    self.owner,
                    given["name"],
                    scopes=given["scopes"],
                    subject=self.chosen_subject(),
                    trusts_open_webui=given["trusts_open_webui"],
                    expires_at=self._expires_at(),
                    key_id=given["key_id"],
                )
        except IntegrityError:
            return None

    def _expires_at(self) -> datetime | None:
        days = self.cleaned_data["expires"]
        return timezone.now() + timedelta(days=days) if days else None

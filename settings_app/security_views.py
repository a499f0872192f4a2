"""The pages of what opens an account and its memories: the second step of signing in, with its
code, and the API keys, with what they changed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model, login
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from isolation import row_access
from settings_app import second_step, throttling
from settings_app.api_keys import KEPT_FOR, ApiKey, AuditLine, issue
from settings_app.forms import ALL, PalaceChoiceForm
from settings_app.pages import PageRequest, no_variables_in_reports, signed_in_form
from settings_app.sessions import end_others

WRONG_CODE = "This code is not right, or was used already. Wait for the next one in your app."
# How long a right password waits for its code.
PATIENCE_S = 600
_WAITS = "second_step"


class CodeForm(forms.Form):
    code = forms.CharField(
        label="Code",
        max_length=40,
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none"}
        ),
    )

    def __init__(self, *args: Any, help_text: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].help_text = help_text


OF_APP = "The six digits that your app shows now."
OF_EITHER = "The six digits that your app shows now, or one of your recovery codes."


def sign_in_or_ask(request: HttpRequest, user: User, where: str) -> HttpResponse:
    """Sign the user in, whose password or link was right; or ask for the code first.

    Args:
        where: The address to go on to.
    """
    with row_access.open_account(user.pk):
        asks = second_step.is_on(user)
    if not asks:
        login(request, user)
        return redirect(where)
    request.session.cycle_key()
    request.session[_WAITS] = [user.pk, user.get_session_auth_hash(), int(time.time()), where]
    return redirect("sign_in_code")


@never_cache
@no_variables_in_reports
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    waiting = _who_waits(request)
    if waiting is None:
        return redirect("sign_in")
    user, where = waiting
    form = CodeForm(request.POST if request.method == "POST" else None, help_text=OF_EITHER)
    if form.is_bound and form.is_valid():
        refused = _check(user, form)
        if not form.errors:
            login(request, user)
            request.session.pop(_WAITS, None)
            return redirect(where)
        return _page(request, form, 429 if refused else 400)
    return _page(request, form, 400 if form.is_bound else 200)


def _page(request: HttpRequest, form: CodeForm, status: int) -> HttpResponse:
    response = render(request, "settings_app/sign_in_code.html", {"form": form}, status=status)
    if status == 429:
        response.headers["Retry-After"] = str(throttling.REST_S)
    return response


def _who_waits(request: HttpRequest) -> tuple[User, str] | None:
    """The user whose password was correct a moment ago in this browser."""
    try:
        user_id, state, at, where = request.session[_WAITS]
    except (KeyError, ValueError, TypeError):
        return None
    user = get_user_model().objects.filter(pk=user_id, is_active=True).first()
    if user is None or time.time() - at > PATIENCE_S or state != user.get_session_auth_hash():
        return None
    return user, where


def _check(user: User, form: CodeForm) -> bool:
    """Add an error to the form unless its code is right; returns whether it was not even read."""
    try:
        throttling.count_code(user.pk)
    except throttling.TooManyAttempts as error:
        form.add_error("code", str(error))
        return True
    with row_access.open_account(user.pk):
        if second_step.take(user, form.cleaned_data["code"]):
            throttling.forget_codes(user.pk)
        else:
            form.add_error("code", WRONG_CODE)
    return False


@signed_in_form
@no_variables_in_reports
@sensitive_post_parameters()
@sensitive_variables()
def second_step_page(request: PageRequest) -> HttpResponse:
    if not request.user.has_usable_password():
        messages.error(request, "Set a password first: the code comes after it.")
        return redirect("account")
    if request.method != "POST":
        return _settings_page(request)
    action = _ACTIONS.get(request.POST.get("do", ""))
    if action is None:
        raise BadRequest
    return action(request)


def _begin(request: PageRequest) -> HttpResponse:
    second_step.begin(request.user)
    return redirect("second_step")


def _confirm(request: PageRequest) -> HttpResponse:
    form = CodeForm(request.POST, help_text=OF_APP)
    if not form.is_valid():
        return _settings_page(request, form)
    try:
        throttling.count_code(request.user.pk)
    except throttling.TooManyAttempts as error:
        form.add_error("code", str(error))
        return _settings_page(request, form, status=429)
    codes = second_step.confirm(request.user, form.cleaned_data["code"])
    if not codes:
        form.add_error("code", WRONG_CODE)
        return _settings_page(request, form)
    throttling.forget_codes(request.user.pk)
    end_others(request.user, request.session.session_key)
    return _codes_page(request, codes, is_new=True)


def _renew(request: PageRequest) -> HttpResponse:
    def renewed() -> HttpResponse:
        return _codes_page(request, second_step.new_recovery_codes(request.user))

    return _with_code(request, renewed)


def _end(request: PageRequest) -> HttpResponse:
    def ended() -> HttpResponse:
        second_step.end(request.user)
        end_others(request.user, request.session.session_key)
        messages.success(request, "From now on your password alone signs you in.")
        return redirect("account")

    return _with_code(request, ended)


def _with_code(request: PageRequest, act: Callable[[], HttpResponse]) -> HttpResponse:
    """Run the action if the form has a correct code."""
    form = CodeForm(request.POST, help_text=OF_EITHER)
    refused = form.is_valid() and _check(request.user, form)
    if form.errors:
        return _settings_page(request, form, status=429 if refused else 400)
    return act()


def _cancel(request: PageRequest) -> HttpResponse:
    """Forget a secret that was never confirmed."""
    if not second_step.is_on(request.user):
        second_step.end(request.user)
    return redirect("account")


_ACTIONS = {"begin": _begin, "confirm": _confirm, "renew": _renew, "end": _end, "cancel": _cancel}


def _settings_page(
    request: PageRequest, form: CodeForm | None = None, *, status: int = 400
) -> HttpResponse:
    """The settings page, with the refused form, if there is one."""
    step = second_step.of_user(request.user)
    is_on = step is not None and step.confirmed_at is not None
    context: dict[str, Any] = {
        "step": step,
        "is_on": is_on,
        "form": form or CodeForm(help_text=OF_EITHER if is_on else OF_APP),
    }
    if step is not None and not is_on:
        picture = segno.make(step.address).svg_inline(scale=5, light="#fff", border=3)
        context |= {"picture": mark_safe(picture), "secret": step.secret}  # noqa: S308 - drawn here.
    page = "settings_app/second_step.html"
    response = render(request, page, context, status=status if form else 200)
    if response.status_code == 429:
        response.headers["Retry-After"] = str(throttling.REST_S)
    return response


def _codes_page(request: PageRequest, codes: list[str], *, is_new: bool = False) -> HttpResponse:
    """The only response that shows the recovery codes."""
    context = {"codes": codes, "is_new": is_new}
    return render(request, "settings_app/recovery_codes.html", context)


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
        return _keys_page(request, KeyForm(request.user))
    form = KeyForm(request.user, request.POST)
    if not form.is_valid():
        return _keys_page(request, form, status=400)
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


def _keys_page(request: PageRequest, form: KeyForm, *, status: int = 200) -> HttpResponse:
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

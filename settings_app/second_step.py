"""The second step of signing in: a code of an authenticator app (TOTP), or a recovery code.

Each code works once. The app's secret is stored encrypted, recovery codes as digests: they are
random enough that a plain digest cannot be reversed. The pages switch it on and off, and ask for
the code when somebody signs in.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

import segno
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import BadRequest
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from isolation import row_access
from settings_app import throttling
from settings_app.pages import PageRequest, no_variables_in_reports, signed_in_form
from settings_app.secrets import Unreadable, seal, unseal
from settings_app.sessions import end_others

ISSUER = "Loci"
# Parameters that every authenticator app supports.
DIGITS, STEP_S = 6, 30
SECRET_BYTES = 20
# How many steps a phone's clock may be off.
DRIFT = 1
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
_NOT_OF_A_CODE = re.compile(r"[\s-]")


class SecondStep(models.Model):
    """A user's second step; without `confirmed_at` it is not active yet."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_step"
    )
    sealed_secret = models.TextField(help_text="Encrypted; see settings_app.secrets.")
    begun_at = models.DateTimeField(default=timezone.now)
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(
        default=0, help_text="Of the last code that was used; none up to it works again."
    )
    recovery_digests = ArrayField(models.CharField(max_length=64), default=list)

    def __str__(self) -> str:
        return f"second step of user {self.owner_id}"

    @property
    def secret(self) -> str:
        """The secret in base32, as apps read it.

        Raises:
            Unreadable: as `unseal`.
        """
        return unseal(self.sealed_secret)

    @property
    def address(self) -> str:
        """The address in the QR code."""
        name = self.owner.get_username()
        return _app(self.secret).get_provisioning_uri(name, ISSUER)


def of_user(user: User) -> SecondStep | None:
    """The user's second step, confirmed or not."""
    return SecondStep.objects.filter(owner=user).select_related("owner").first()


def is_on(user: User) -> bool:
    return SecondStep.objects.filter(owner=user).exclude(confirmed_at=None).exists()


def begin(user: User) -> None:
    """Make a secret for an app to read, unless there is one already."""
    secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()
    SecondStep.objects.get_or_create(owner=user, defaults={"sealed_secret": seal(secret)})


@transaction.atomic
def confirm(user: User, code: str) -> list[str]:
    """Switch it on if the app's code is right. Returns the recovery codes, which are not stored;
    none if it was wrong, or is on already."""
    step = SecondStep.objects.select_for_update().filter(owner=user, confirmed_at=None).first()
    if step is None or not _take_app_code(step, _plain(code)):
        return []
    SecondStep.objects.filter(pk=step.pk).update(confirmed_at=timezone.now())
    return _new_recovery_codes(step)


@transaction.atomic
def new_recovery_codes(user: User) -> list[str]:
    """Make new recovery codes; earlier ones stop working."""
    return _new_recovery_codes(SecondStep.objects.select_for_update().get(owner=user))


def take(user: User, code: str) -> bool:
    """Use a code; returns whether it is right. Each works once, even if sent twice at once."""
    step = SecondStep.objects.filter(owner=user).exclude(confirmed_at=None).first()
    plain = _plain(code)
    if step is None or not plain:
        return False
    return _take_app_code(step, plain) or _take_recovery_code(step, plain)


def end(user: User) -> None:
    SecondStep.objects.filter(owner=user).delete()


def _plain(code: str) -> str:
    return _NOT_OF_A_CODE.sub("", code).upper()


def _app(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_S)  # noqa: S303 - apps know no other.


def _take_app_code(step: SecondStep, plain: str) -> bool:
    try:
        app = _app(step.secret)
    except Unreadable:
        return False  # A recovery code still works.
    now = int(time.time()) // STEP_S
    for number in range(now - DRIFT, now + DRIFT + 1):
        if constant_time_compare(app.generate(number * STEP_S), plain):
            fresh = SecondStep.objects.filter(pk=step.pk, last_step__lt=number)
            return bool(fresh.update(last_step=number))
    return False


def _take_recovery_code(step: SecondStep, plain: str) -> bool:
    digest = _digest(plain)
    with transaction.atomic():
        known = SecondStep.objects.select_for_update().filter(pk=step.pk)
        found = known.filter(recovery_digests__contains=[digest]).first()
        if found is None:
            return False
        left = [each for each in found.recovery_digests if each != digest]
        known.update(recovery_digests=left)
    return True


def _new_recovery_codes(step: SecondStep) -> list[str]:
    plain = [
        base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode()
        for _ in range(RECOVERY_CODES)
    ]
    digests = [_digest(code) for code in plain]
    SecondStep.objects.filter(pk=step.pk).update(recovery_digests=digests)
    return ["-".join(re.findall("....", code)) for code in plain]


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()


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
        asks = is_on(user)
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
        if take(user, form.cleaned_data["code"]):
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
    begin(request.user)
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
    codes = confirm(request.user, form.cleaned_data["code"])
    if not codes:
        form.add_error("code", WRONG_CODE)
        return _settings_page(request, form)
    throttling.forget_codes(request.user.pk)
    end_others(request.user, request.session.session_key)
    return _codes_page(request, codes, is_new=True)


def _renew(request: PageRequest) -> HttpResponse:
    def renewed() -> HttpResponse:
        return _codes_page(request, new_recovery_codes(request.user))

    return _with_code(request, renewed)


def _end(request: PageRequest) -> HttpResponse:
    def ended() -> HttpResponse:
        end(request.user)
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
    if not is_on(request.user):
        end(request.user)
    return redirect("account")


_ACTIONS = {"begin": _begin, "confirm": _confirm, "renew": _renew, "end": _end, "cancel": _cancel}


def _settings_page(
    request: PageRequest, form: CodeForm | None = None, *, status: int = 400
) -> HttpResponse:
    """The settings page, with the refused form, if there is one."""
    step = of_user(request.user)
    is_on = step is not None and step.confirmed_at is not None
    context: dict[str, Any] = {
        "step": step,
        "is_on": is_on,
        "form": form or CodeForm(help_text=OF_EITHER if is_on else OF_APP),
    }
    if step is not None and not is_on:
        picture = segno.make(step.address).svg_inline(scale=5, light="#fff", border=3)
        context |= {"picture": mark_safe(picture), "secret": step.secret}  # noqa: S308 - drawn here.
    page = "settings_app/html"
    response = render(request, page, context, status=status if form else 200)
    if response.status_code == 429:
        response.headers["Retry-After"] = str(throttling.REST_S)
    return response


def _codes_page(request: PageRequest, codes: list[str], *, is_new: bool = False) -> HttpResponse:
    """The only response that shows the recovery codes."""
    context = {"codes": codes, "is_new": is_new}
    return render(request, "settings_app/recovery_codes.html", context)

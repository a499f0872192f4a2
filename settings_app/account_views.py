"""The pages for signing up, in and out, and of the account."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from settings_app import second_step, throttling
from settings_app.accounts import LinkRefused, redeem
from settings_app.forms import PasswordForm, SignInForm, SignUpForm, TimeZoneForm, too_many_attempts
from settings_app.models import MemorySettings, settings_of
from settings_app.pages import PageRequest, no_variables_in_reports, signed_in_form
from settings_app.security_views import sign_in_or_ask
from settings_app.sessions import end_one, end_others, public_id_of, sessions_of
from settings_app.throttling import REST_S

# The headers of browsers that only prefetch a page; the second is Safari's.
PURPOSE_HEADERS = ("Sec-Purpose", "Purpose")


class SignIn(LoginView):
    template_name = "settings_app/sign_in.html"
    form_class = SignInForm
    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        where = super().get_redirect_url()
        # A user who is signed in already would be redirected in circles.
        return "" if where.startswith(self.request.path) else where

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, may_sign_up=settings.SIGN_UP)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return sign_in_or_ask(self.request, form.get_user(), self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        return _refused(response) if too_many_attempts(form) else response


@never_cache
@no_variables_in_reports
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    if not settings.SIGN_UP:
        raise Http404
    where = _where_to(request)
    if request.user.is_authenticated:
        return redirect(where)
    if request.method == "POST":
        try:
            throttling.count_sign_up(request)
        except throttling.TooManyAttempts as error:
            response = _sign_up_page(request, SignUpForm(), refused=str(error))
            return _refused(response, error.rest_s)
    form = SignUpForm(request.POST if request.method == "POST" else None)
    user = _account_made(request, form) if form.is_bound else None
    if user is not None:
        return sign_in_or_ask(request, user, where)
    response = _sign_up_page(request, form)
    return _refused(response) if too_many_attempts(form) else response


def _sign_up_page(request: HttpRequest, form: SignUpForm, *, refused: str = "") -> HttpResponse:
    """
    Args:
        refused: Why the form was not read; empty if it was.
    """
    where = _where_to(request)
    asked = "" if where == resolve_url(settings.LOGIN_REDIRECT_URL) else where
    context = {"form": form, "refused": refused, "next": asked}
    status = 400 if form.is_bound else 200
    return render(request, "settings_app/sign_up.html", context, status=status)


def _where_to(request: HttpRequest) -> str:
    """The page to go on to: `next`, if it is on this site, else the default."""
    where = request.POST.get("next") or request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        where, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    # A user who is signed in already would be redirected in circles.
    if not is_ours or where.startswith(request.path):
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return where


def _account_made(request: HttpRequest, form: SignUpForm) -> User | None:
    user = form.make_account() if form.is_valid() else None
    return user or form.account_made_before(request)


@never_cache
@require_GET  # Not HEAD: a check whether the link exists must not use it up.
def sign_in_once(request: HttpRequest, token: str) -> HttpResponse:
    if any("prefetch" in request.headers.get(name, "") for name in PURPOSE_HEADERS):
        return _private(HttpResponse(status=503))
    try:
        user = redeem(token)
    except LinkRefused as refusal:
        if refusal.user is not None and refusal.user == request.user:
            return _private(redirect(settings.LOGIN_REDIRECT_URL))
        context = {"reason": str(refusal)}
        page = render(request, "settings_app/link_refused.html", context, status=403)
        return _private(page)
    return _private(sign_in_or_ask(request, user, resolve_url(settings.LOGIN_REDIRECT_URL)))


@signed_in_form
@no_variables_in_reports
@sensitive_post_parameters()
def account(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _account_page(request)
    action = ACCOUNT_ACTIONS.get(request.POST.get("do", ""))
    if action is None:
        raise BadRequest
    return action(request)


def _change_password(request: PageRequest) -> HttpResponse:
    form = PasswordForm(request, request.user, request.POST)
    if not form.is_valid():
        return _account_page(request, password_form=form)
    form.save()
    update_session_auth_hash(request, request.user)
    end_others(request.user, request.session.session_key)
    messages.success(request, "The new password is set. Everywhere else you are signed out.")
    return redirect("account")


def _change_time_zone(request: PageRequest) -> HttpResponse:
    form = TimeZoneForm(request.POST)
    if not form.is_valid():
        return _account_page(request, time_zone_form=form)
    chosen = {"time_zone": form.cleaned_data["time_zone"]}
    MemorySettings.objects.update_or_create(owner=request.user, defaults=chosen)
    messages.success(request, "The time zone is saved.")
    return redirect("account")


def _sign_out_elsewhere(request: PageRequest) -> HttpResponse:
    end_others(request.user, request.session.session_key)
    messages.success(request, "Everywhere else you are signed out.")
    return redirect("account")


def _sign_out_one(request: PageRequest) -> HttpResponse:
    if request.POST.get("session") == public_id_of(request.session.session_key or ""):
        messages.error(request, "That is this browser. Sign out in the menu of your account.")
    elif end_one(request.user, request.POST.get("session", "")):
        messages.success(request, "Signed out there.")
    else:
        messages.success(request, "It had ended already.")
    return redirect("account")


ACCOUNT_ACTIONS = {
    "password": _change_password,
    "time_zone": _change_time_zone,
    "sign_out_elsewhere": _sign_out_elsewhere,
    "sign_out_one": _sign_out_one,
}


def _account_page(
    request: PageRequest,
    *,
    password_form: PasswordForm | None = None,
    time_zone_form: TimeZoneForm | None = None,
) -> HttpResponse:
    """The account's page, with the invalid form, if there is one."""
    chosen = settings_of(request.user.pk).time_zone
    here = request.session.session_key
    sessions = list(sessions_of(request.user, but=None).order_by("-seen_at"))
    context = {
        "has_password": request.user.has_usable_password(),
        "password_form": password_form or PasswordForm(request, request.user),
        "time_zone_form": time_zone_form or TimeZoneForm(initial={"time_zone": chosen}),
        "now": timezone.now(),
        "sessions": [(session, session.session_key == here) for session in sessions],
        "sessions_elsewhere": sum(session.session_key != here for session in sessions),
        "second_step_is_on": second_step.is_on(request.user),
    }
    status = 400 if password_form or time_zone_form else 200
    response = render(request, "settings_app/account.html", context, status=status)
    refused = password_form is not None and too_many_attempts(password_form)
    return _refused(response) if refused else response


def _refused(response: HttpResponse, rest_s: int = REST_S) -> HttpResponse:
    response.status_code = 429
    response.headers["Retry-After"] = str(rest_s)
    return response


def _private(response: HttpResponse) -> HttpResponse:
    """Forbid referrers: the address contains the token."""
    response.headers["Referrer-Policy"] = "no-referrer"
    return response

"""Who may see a page, and what stays behind in the browser."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, HttpResponseForbidden
from django.shortcuts import resolve_url
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

P = ParamSpec("P")
Handler = Callable[Concatenate["PageRequest", P], HttpResponseBase]


class PageRequest(HttpRequest):
    """A request of somebody who has signed in."""

    user: User
    htmx: HtmxDetails


def signed_in_page(view: Handler[P]) -> Handler[P]:
    """For pages that show what is private: sign-in first, and no copy kept by the browser."""
    return _guarded(view, "GET", "HEAD")


def signed_in_form(view: Handler[P]) -> Handler[P]:
    """For pages that hold a form and take what it sends at the same address."""
    return _guarded(view, "GET", "HEAD", "POST")


def signed_in_action(view: Handler[P]) -> Handler[P]:
    """For addresses that only do something, when posted to."""
    return _guarded(view, "POST")


def _guarded(view: Handler[P], *methods: str) -> Handler[P]:
    # With no copy kept, the back button shows neither a part as a page nor a page after sign-out.
    @never_cache
    @require_http_methods(list(methods))
    @wraps(view)
    def guarded(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return _sign_in_first(request)

    return guarded


def _sign_in_first(request: PageRequest) -> HttpResponseBase:
    if request.method == "POST":
        if request.htmx:
            # What was typed stays where it is; the page says what to do.
            return HttpResponseForbidden("You are signed out. Sign in in another tab, then repeat.")
        return redirect_to_login(resolve_url(settings.LOGIN_REDIRECT_URL))
    if request.htmx:
        # A part of a page must not be filled with the sign-in form: reload the whole page.
        return HttpResponseClientRefresh()
    return redirect_to_login(request.get_full_path())

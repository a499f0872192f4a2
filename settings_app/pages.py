"""What all pages share: sign-in, rendering for htmx, error reports without secrets, and the
Content-Security-Policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, ItemsView
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseForbidden
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

P = ParamSpec("P")
SIGNED_OUT = "You were signed out, so nothing was done. Sign in, go back, and repeat it."
NOTHING_SELECTED = "Nothing was selected. Tick the boxes of the rows first."
CHANGED = (
    "This was changed meanwhile, perhaps in another tab, so nothing was saved. Look at it in a new "
    "tab; to replace what it is now, save again."
)
Handler = Callable[Concatenate["PageRequest", P], HttpResponseBase]
# Everything comes from this server, nothing is inline.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


def program(_request: HttpRequest) -> dict[str, str]:
    """For templates: how commands are run here."""
    return {"manage": settings.MANAGE, "sign_in": settings.SIGN_IN}


class NoVariables(SafeExceptionReporterFilter):
    """Hides all variables, also with LOCI_DEBUG: some frame's would contain a key."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_traceback_frame_variables(self, request: Any, tb_frame: Any) -> ItemsView[str, Any]:
        return {}.items()


def no_variables_in_reports(
    view: Callable[Concatenate[Any, P], HttpResponseBase],
) -> Callable[Concatenate[Any, P], HttpResponseBase]:
    """For views that take a secret, above `sensitive_post_parameters`."""

    @wraps(view)
    def reporting_less(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        request.exception_reporter_filter = NoVariables()
        return view(request, *args, **kwargs)

    return reporting_less


class PageRequest(HttpRequest):
    """A request of a signed-in user."""

    user: User
    htmx: HtmxDetails


def signed_in_page(view: Handler[P]) -> Handler[P]:
    """For private pages: sign-in first, and no copy kept by the browser."""
    return _guarded(view, "GET", "HEAD")


def signed_in_form(view: Handler[P]) -> Handler[P]:
    """For pages with a form that is posted to the same address."""
    return _guarded(view, "GET", "HEAD", "POST")


def signed_in_poll(view: Handler[P]) -> Handler[P]:
    """For parts that a page reloads by itself, while its user may be typing.

    If the user has signed out, the page stays as it is.
    """
    return _guarded(view, "GET", "HEAD", "POST", is_polled=True)


def signed_in_action(view: Handler[P]) -> Handler[P]:
    """For addresses that only accept POST."""
    return _guarded(view, "POST")


def _guarded(view: Handler[P], *methods: str, is_polled: bool = False) -> Handler[P]:
    # With no copy kept, the back button shows neither a part as a page nor a page after sign-out.
    @never_cache
    @require_http_methods(list(methods))
    @wraps(view)
    def guarded(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return _sign_in_first(request, is_polled=is_polled)

    return guarded


def _sign_in_first(request: PageRequest, *, is_polled: bool) -> HttpResponseBase:
    if request.method == "POST":
        if request.htmx:
            # What was typed stays where it is; the page says what to do.
            return HttpResponseForbidden("You are signed out. Sign in in another tab, then repeat.")
        messages.warning(request, SIGNED_OUT)
        return redirect_to_login(resolve_url(settings.LOGIN_REDIRECT_URL))
    if request.htmx and is_polled:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    if request.htmx:
        # A part of a page must not be filled with the sign-in form: reload the whole page.
        return HttpResponseClientRefresh()
    return redirect_to_login(request.get_full_path())


def version_of(*values: object) -> str:
    """A digest of what a form is made from, which it sends back as `version`."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def is_stale(request: HttpRequest, *values: object) -> bool:
    """Whether the form was made from other values than these, which are stored now.

    What has no `version`, such as a program's request, is not.
    """
    return request.POST.get("version") not in {None, version_of(*values)}


def stored_values(form: Any, names: Collection[str] | None = None) -> list[Any]:
    """What a form of a model without data is made from: of these fields, or of all."""
    return [form.initial.get(name) for name in names or form.fields]


def refuse_stale(
    request: HttpRequest, form: Any, stored: list[Any], names: Collection[str] | None = None
) -> None:
    """Add an error to a valid form that was made from other values, and would change these."""
    if not (is_stale(request, stored) and form.is_valid()):
        return
    # A secret is never shown again, so it has no value to begin with.
    if any(_changes(form, name) for name in names or form.fields if name in form.initial):
        form.add_error(None, CHANGED)


def _changes(form: Any, name: str) -> bool:
    field = form.fields[name]
    # What a form begins with may be a text where the field has a number.
    return bool(field.has_changed(field.to_python(form.initial[name]), form[name].data))


def wants_part(request: PageRequest) -> bool:
    """Whether htmx asks for a part of the page: what replaces `#main` is taken from all of it."""
    return bool(request.htmx) and request.htmx.target != "main"


def render_page_or_part(
    request: PageRequest, template: str, part: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """`template`, or its partial `part` where htmx asks for less than the page."""
    name = f"{template}#{part}" if wants_part(request) else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    return response


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

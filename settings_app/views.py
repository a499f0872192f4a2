"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from settings_app.sign_in import LinkRefused, redeem

# How browsers say that they only fetch ahead; the second is Safari's.
PURPOSE_HEADERS = ("Sec-Purpose", "Purpose")
BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(LoginView):
    template_name = "settings_app/sign_in.html"
    redirect_authenticated_user = True


@never_cache
@require_GET  # Not HEAD: whoever only looks whether the link exists must not use it up.
def sign_in_once(request: HttpRequest, token: str) -> HttpResponse:
    if any("prefetch" in request.headers.get(name, "") for name in PURPOSE_HEADERS):
        return _private(HttpResponse(status=503))
    try:
        user = redeem(token)
    except LinkRefused as refusal:
        if refusal.user is not None and refusal.user == request.user:
            return _private(redirect("memory"))
        context = {"reason": str(refusal)}
        page = render(request, "settings_app/link_refused.html", context, status=403)
        return _private(page)
    login(request, user, backend=BACKEND)
    return _private(redirect("memory"))


def _private(response: HttpResponse) -> HttpResponse:
    """The address holds the token, so no page may be told that one came from it."""
    response.headers["Referrer-Policy"] = "no-referrer"
    return response

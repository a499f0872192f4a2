"""A test client that signs in without a session that nobody has used.

Django's makes one, looks it up three times and replaces it: two thirds of what signing in takes.
"""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest
from django.test.client import ClientMixin

_sign_in_again = ClientMixin._login


def install() -> None:
    ClientMixin._login = _sign_in


def _sign_in(client, user, backend=None) -> None:
    if settings.SESSION_COOKIE_NAME in client.cookies:
        _sign_in_again(client, user, backend)
        return
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore()
    login(request, user, backend)
    request.session.save()
    client._set_login_cookies(request)

"""Who asks: the scheme `Token`, by which mem0's client is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from api.rest.access import key_in
from isolation import row_access
from settings_app.api_keys import ApiKey

SCHEME = "token"
View = Callable[..., HttpResponseBase]


class TokenKey(BaseAuthentication):
    """A key of ours in `Authorization: Token`; also in `Bearer`, for who tries it by hand."""

    def authenticate(self, request: Request) -> tuple[User, ApiKey]:
        key = key_in(request.headers.get("Authorization", ""), (SCHEME, "bearer"))
        row_access.enter(key.row_access())
        return key.owner, key

    def authenticate_header(self, request: Request) -> str:
        return 'Token realm="Loci"'


def for_mem0(ours: View, theirs: View) -> View:
    """A view that answers mem0's client by the second view, and all others by the first."""

    @wraps(ours)
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        scheme = request.headers.get("Authorization", "").strip().partition(" ")[0]
        chosen = theirs if scheme.lower() == SCHEME else ours
        return chosen(request, *args, **kwargs)

    return view

"""The pages for what is too much, what is not there and what is not allowed.

Under ASGI Django makes them in a thread that belongs to no request. Whatever they ask the database
there, such as who is signed in, would leave a connection open that nobody closes.
"""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.db import close_old_connections, connection
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Too much at once is not damaged: the page says so, and htmx leaves what was typed alone."""
    if isinstance(exception, RequestDataTooBig):
        return HttpResponse(loader.get_template("413.html").render(), status=413)
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    response = defaults.page_not_found(request, exception)
    _let_go()
    return response


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    response = defaults.permission_denied(request, exception)
    _let_go()
    return response


def _let_go() -> None:
    # Within a transaction somebody else still holds the connection.
    if not connection.in_atomic_block:
        close_old_connections()

"""Who may see a page, and what stays behind in the browser."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """A request of somebody who has signed in."""

    user: User
    htmx: HtmxDetails


def signed_in_page(
    view: Callable[Concatenate[PageRequest, P], HttpResponse],
) -> Callable[Concatenate[PageRequest, P], HttpResponse]:
    """For pages that show what is private: sign-in first, and no copy kept by the browser."""

    # With no copy kept, the back button shows neither a part as a page nor a page after sign-out.
    @never_cache
    @require_safe
    @wraps(view)
    def guarded(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        if request.htmx:
            # A part of a page must not be filled with the sign-in form: load the whole page anew.
            return HttpResponseClientRefresh()
        return redirect_to_login(request.get_full_path())

    return guarded

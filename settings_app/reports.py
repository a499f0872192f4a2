"""What a report of a fault may show of requests that carry a secret."""

from __future__ import annotations

from collections.abc import Callable, ItemsView
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.debug import SafeExceptionReporterFilter

P = ParamSpec("P")


class NoVariables(SafeExceptionReporterFilter):
    """Also where LOCI_DEBUG is on: a key would be in one variable or another of some frame."""

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

"""The admin site: accounts and what models cost. It shows no memories."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from isolation import row_access


class Site(AdminSite):
    site_title = site_header = "Loci, for its operators"
    index_title = "Accounts and costs"

    def get_urls(self) -> list[URLPattern | URLResolver]:
        # This address redirects to the page of any row, and so reveals which rows exist.
        return [entry for entry in super().get_urls() if _name(entry) != "view_on_site"]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Wrap an admin view: it may read accounts and usage of all people."""

        @wraps(view)
        def of_all(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if not self.has_permission(request):
                return view(request, *args, **kwargs)
            if any("\0" in text for texts in request.GET.lists() for text in texts[1]):
                raise BadRequest("The address has a NUL character, which no text here has.")
            with row_access.sweep("admin"):
                response = view(request, *args, **kwargs)
                # Templates read rows when they are rendered, so render within the block.
                return response.render() if hasattr(response, "render") else response

        return super().admin_view(of_all, cacheable)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Redirect to the usual sign-in page, which limits attempts."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        where = request.GET.get("next", "")
        if not url_has_allowed_host_and_scheme(where, {request.get_host()}):
            where = reverse("admin:index")
        return redirect_to_login(where)

    def logout(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return LogoutView.as_view()(request)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("account")


def _name(entry: URLPattern | URLResolver) -> str | None:
    return entry.name if isinstance(entry, URLPattern) else None

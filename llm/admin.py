"""The admin page of model usage; read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest

from llm.models import Usage

if TYPE_CHECKING:
    UsageAdminBase = admin.ModelAdmin[Usage]
else:  # Only the stubs make the class generic.
    UsageAdminBase = admin.ModelAdmin


@admin.register(Usage)
class UsageAdmin(UsageAdminBase):
    """A read-only list of calls."""

    list_display = (
        "created_at",
        "owner",
        "purpose",
        "provider",
        "model",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "duration_ms",
        "outcome",
    )
    list_filter = ("purpose", "outcome", "created_at")
    search_fields = ("owner__username", "provider", "model")
    list_select_related = ("owner",)
    ordering = ("-created_at", "-pk")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Usage | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Usage | None = None) -> bool:
        return False

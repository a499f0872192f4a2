"""The admin's pages of accounts and of model usage, for operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest
from django.urls import URLPattern

from llm.models import Usage
from settings_app.accounts import people_called, rows_of
from settings_app.forms import NAME_TAKEN

if TYPE_CHECKING:
    ChangeForm = UserChangeForm[User]
    CreationForm = AdminUserCreationForm[User]
    DjangosUserAdmin = UserAdmin[User]
    UsageAdminBase = admin.ModelAdmin[Usage]
else:  # Generic only for the type checker.
    ChangeForm, CreationForm, DjangosUserAdmin = UserChangeForm, AdminUserCreationForm, UserAdmin
    UsageAdminBase = admin.ModelAdmin

BY_ADDRESS = f"Disabled: {settings.MANAGE} sign_in_link NAME prints an address that signs them in."
# The permissions of staff; all others have no page here.
PERMISSIONS = ("add_user", "change_user", "delete_user", "view_user", "view_usage")


class PersonForm(ChangeForm):
    password: Any = None

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if people_called(name).exclude(pk=self.instance.pk).exists():
            raise ValidationError(NAME_TAKEN)
        return name


class NewPersonForm(CreationForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["usable_password"].help_text = BY_ADDRESS

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if people_called(name).exists():
            raise ValidationError(NAME_TAKEN)
        return name


class PersonAdmin(DjangosUserAdmin):
    """Users, without their passwords: an operator who sets one could read their memories.

    For a forgotten password, make a one-time link (`manage.py sign_in_link NAME`).
    """

    form = PersonForm
    add_form = NewPersonForm
    fieldsets = (
        (None, {"fields": ("username", "email")}),
        ("May", {"fields": ("is_active", "is_staff", "is_superuser", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    list_display = ("username", "email", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email")
    filter_horizontal = ("user_permissions",)

    def get_urls(self) -> list[URLPattern]:
        closed = "auth_user_password_change"
        return [entry for entry in super().get_urls() if entry.name != closed]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only the shown filters: others could reveal session keys."""
        return lookup.split("__")[0] in self.list_filter

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only superusers can change permissions."""
        fields = super().get_readonly_fields(request, obj)
        if request.user.is_superuser:
            return fields
        return (*fields, "is_staff", "is_superuser", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _not_above(request.user, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _not_above(request.user, obj)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> ModelMultipleChoiceField[Any] | None:
        useful = Permission.objects.filter(codename__in=PERMISSIONS)
        kwargs["queryset"] = useful.select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_deleted_objects(
        self, objs: Iterable[User], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """The rows deleted with `objs`, as numbers by kind, without content."""
        people = list(objs)
        allowed = all(self.has_delete_permission(request, person) for person in people)
        refused = set() if allowed else {str(self.opts.verbose_name)}
        return [f"User: {person}" for person in people], rows_of(people), refused, []

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        self.delete_queryset(request, User.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        with transaction.atomic():
            # A concurrent write for this user waits, and then finds the user gone.
            locked = User.objects.filter(pk__in=queryset.values("pk")).select_for_update()
            people = [person.pk for person in locked.order_by("pk")]
            User.objects.filter(pk__in=people).delete()


def _not_above(user: Any, person: User | None) -> bool:
    return user.is_superuser or person is None or not person.is_superuser


admin.site.unregister(Group)
admin.site.unregister(User)
admin.site.register(User, PersonAdmin)


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

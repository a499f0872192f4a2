"""Authentication by name and password."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from isolation import row_access


class Accounts(ModelBackend):
    """The signed-in user with their settings, in one query."""

    def get_user(self, user_id: int) -> User | None:
        with row_access.open_account(user_id):
            user = User.objects.select_related("memory_settings").filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None

"""Find the palace by `user_id` in the query string or the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from api.rest.base import ApiView
from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.problems import Problem
from palace.sdk import Memory


def user_field() -> serializers.CharField:
    said = "Whose palace; omitted, your own. In the query string or the body."
    return ExactText(required=False, allow_null=True, default=None, help_text=said)


class PalaceRequest(Shape):
    user_id = user_field()


class WorkingMemoryApiView(ApiView):
    @property
    def memory(self) -> Memory:
        """The SDK's Memory, limited to the palaces of the key."""
        return Memory(self.key.owner, subject=self.key.subject)

    def user(self, params: Mapping[str, Any] | None = None) -> str | None:
        """
        Args:
            params: The body, if any.

        Raises:
            Problem: 400, query string and body disagree.
        """
        given = [self.read_query(PalaceRequest)["user_id"], (params or {}).get("user_id")]
        named = {user for user in given if user is not None}
        if len(named) > 1:
            said = "The address names one user_id and the body another. Send one of them."
            raise Problem(400, "bad_input", said)
        return next(iter(named), None)

"""Whose short memory: `user_id` in the address or in the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from api.rest.base import ApiView
from api.rest.memory_service.shapes import ExactText, Shape
from api.rest.problems import Problem
from palace.sdk.memory import Memory


def user_field() -> serializers.CharField:
    said = "Whose palace; left out, your own. In the address or in the body."
    return ExactText(required=False, allow_null=True, default=None, help_text=said)


class Whose(Shape):
    user_id = user_field()


class ShortView(ApiView):
    @property
    def memory(self) -> Memory:
        """All that the key opens, and nothing else."""
        return Memory(self.key.owner, subject=self.key.subject)

    def user(self, asked: Mapping[str, Any] | None = None) -> str | None:
        """
        Args:
            asked: The body, where there is one.

        Raises:
            Problem: 400, address and body name two.
        """
        given = [self.read_query(Whose)["user_id"], (asked or {}).get("user_id")]
        named = {user for user in given if user is not None}
        if len(named) > 1:
            said = "The address names one user_id and the body another. Send one of them."
            raise Problem(400, "bad_input", said)
        return next(iter(named), None)

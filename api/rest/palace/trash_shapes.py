"""Requests and responses: the trash."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from api.rest.palace.shapes import MOST_DRAWERS, DrawerShown, Shape

MOST = 2**53


class TrashedShown(DrawerShown):
    trashed_at = serializers.DateTimeField()
    batch = serializers.IntegerField(help_text="Shared by drawers trashed together.")
    days_left = serializers.IntegerField(help_text="Days until it is permanently deleted.")


class Restore(Shape):
    batch = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    drawers = serializers.ListField(
        child=serializers.UUIDField(), required=False, min_length=1, max_length=MOST_DRAWERS
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("Name either a batch or drawers to restore.")
        return attrs


class Restored(Shape):
    drawers = serializers.IntegerField(help_text="The number of restored drawers.")


class Empty(Shape):
    up_to = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        help_text="A batch; later ones stay in the trash.",
    )


class Emptied(Shape):
    deleted = serializers.IntegerField()
    left = serializers.IntegerField(help_text="The number that is being deleted in the background.")

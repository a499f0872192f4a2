"""What is asked and shown of the trash."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from api.rest.palace.shapes import MOST_DRAWERS, DrawerShown, Shape

MOST = 2**53


class TrashedShown(DrawerShown):
    trashed_at = serializers.DateTimeField()
    batch = serializers.IntegerField(help_text="Shared by all that went there together.")
    days_left = serializers.IntegerField(help_text="Until it is deleted for good.")


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
    drawers = serializers.IntegerField(help_text="How many came back.")


class Empty(Shape):
    up_to = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        help_text="A batch: what went to the trash later stays there.",
    )


class Emptied(Shape):
    deleted = serializers.IntegerField()
    left = serializers.IntegerField(help_text="How many are deleted in the background.")

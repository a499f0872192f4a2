"""What was done for the user: one line each, with its figures."""

from __future__ import annotations

from django.db import models

from palace.models.palace import InPalace


class Activity(InPalace):
    class Kind(models.TextChoices):
        MEMORY_MINED = "memory_mined", "Remembered"
        CHATS_IMPORTED = "chats_imported", "Imported"
        DRAWERS_TRASHED = "drawers_trashed", "Moved to the trash"
        DRAWERS_RESTORED = "drawers_restored", "Restored"
        DRAWERS_PURGED = "drawers_purged", "Deleted for good"
        DRAWERS_MOVED = "drawers_moved", "Moved"
        WING_CHANGED = "wing_changed", "Wings renamed"
        WINGS_MERGED = "wings_merged", "Wings merged"
        ENTITIES_MERGED = "entities_merged", "Entities merged"
        ENTITY_SPLIT = "entity_split", "Entities split"
        ENTITY_UNDONE = "entity_undone", "Entities put back"
        DREAMT = "dreamt", "Dreamt"

    kind = models.CharField(max_length=30, choices=Kind.choices)
    summary = models.CharField(max_length=300, help_text="One sentence for a person.")
    detail = models.JSONField(default=dict, help_text="Its figures, and what it was about.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "activities"
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="activity_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="activity_uuid"),
        ]
        indexes = [models.Index(fields=["palace", "-created_at"], name="activity_by_time")]

    def __str__(self) -> str:
        return self.summary

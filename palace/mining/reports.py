"""Reports: the activity that says what a mining run landed."""

from __future__ import annotations

from collections import Counter

from palace.mining.linking import Landed
from palace.models import Activity, Room


class Report:
    """One activity a run, growing with each batch in the batch's own transaction.

    So a run that is killed has reported exactly what it landed.

    Attributes:
        made: How many drawers, topics, entities, mentions and passages landed.
        notes: What was degraded, in sentences, each once.
    """

    def __init__(self, room: Room) -> None:
        self.made: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
        self._room = room
        self._activity = Activity(palace_id=room.palace_id, kind=Activity.Kind.MEMORY_MINED)

    def add(self, landed: Landed) -> None:
        """Call it in the transaction that wrote what landed."""
        self.made.update(landed.made)
        self.notes.update(dict.fromkeys(landed.notes))
        self._activity.summary = self._summary()[:300]
        self._activity.detail = {
            "room": str(self._room.uuid),
            "made": dict(self.made),
            "notes": list(self.notes),
        }
        self._activity.save()

    def _summary(self) -> str:
        # Mining gives an unsorted room its title and its wing.
        room = Room.objects.select_related("wing").get(pk=self._room.pk)
        count = self.made["drawers"]
        messages = "message" if count == 1 else "messages"
        return f"Remembered {count} {messages} of “{room.title}” in {room.wing.name}."

"""Reports: the activity that records the results of a mining run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from palace.mining.room_linker import Landed
from palace.models import Activity, Room


class Report:
    """One activity per run, updated in the transaction of each batch.

    So a killed run has reported exactly what it committed.

    Attributes:
        made: Numbers of drawers, topics, entities, mentions and passages written.
        notes: Sentences on what was degraded, each once.
    """

    def __init__(self, room: Room) -> None:
        self.made: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
        self._activity = Activity(palace_id=room.palace_id, kind=Activity.Kind.MEMORY_MINED)

    def add(self, room: Room, landed: Landed) -> Activity:
        """Add a batch's results; the caller saves the activity in the same transaction.

        Args:
            room: With its title and wing from mining.
        """
        self.made.update(landed.made)
        self.notes.update(dict.fromkeys(landed.notes))
        self._activity.summary = summary_of(self.made["drawers"], room)
        self._activity.detail = {
            "room": str(room.uuid),
            "made": dict(self.made),
            "notes": list(self.notes),
        }
        return self._activity


def save(activities: Sequence[Activity]) -> None:
    """Update the activities of earlier batches, and insert all others in one statement."""
    for activity in [each for each in activities if each.pk]:
        activity.save()
    Activity.objects.bulk_create([each for each in activities if not each.pk])


def summary_of(count: int, room: Room) -> str:
    """The sentence of an activity on the messages mined in a room."""
    messages = "message" if count == 1 else "messages"
    return f"Remembered {count} {messages} of “{room.title}” in {room.wing.name}."[:300]

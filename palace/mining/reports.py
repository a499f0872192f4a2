"""Reports: the activity that says what a mining run landed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from palace.mining.room_linker import Landed
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
        self._activity = Activity(palace_id=room.palace_id, kind=Activity.Kind.MEMORY_MINED)

    def add(self, room: Room, landed: Landed) -> Activity:
        """What landed, to be saved in the transaction that wrote it.

        Args:
            room: As it is now, with the title and wing that mining gave it.
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
    """Those of earlier batches anew, all others in one statement."""
    for activity in [each for each in activities if each.pk]:
        activity.save()
    Activity.objects.bulk_create([each for each in activities if not each.pk])


def summary_of(count: int, room: Room) -> str:
    """What an activity says of so many messages mined in a room."""
    messages = "message" if count == 1 else "messages"
    return f"Remembered {count} {messages} of “{room.title}” in {room.wing.name}."[:300]

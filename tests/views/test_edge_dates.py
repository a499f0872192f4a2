"""Messages from the ends of the calendar, which exports have by mistake, break no page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.transcripts import Transcript, Turn
from palace.models import Room
from palace.storage.transcript_filing import file_transcript
from settings_app.models import MemorySettings

EDGES = (
    datetime.min.replace(tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
)


@pytest.mark.parametrize(
    "zone",
    ["Pacific/Kiritimati", "Pacific/Pago_Pago", pytest.param("", marks=pytest.mark.exhaustive)],
)
def test_every_page_of_the_palace_answers(alices, alice, palace, zone):
    MemorySettings.objects.update_or_create(owner=alice, defaults={"time_zone": zone})
    turns = tuple(Turn(str(at.year), "user", f"The light of {at.year}.", at) for at in EDGES)
    file_transcript(palace, Transcript("plain", "edges", "The lighthouse", turns))
    room = Room.objects.within(palace).get()
    pages = ("/memory/", "/memory/?view=list", "/memory/?q=light", "/memory/?day=9999-12-31")
    for address in (*pages, room.wing.get_absolute_url(), room.get_absolute_url()):
        assert alices.get(address).status_code == 200, address

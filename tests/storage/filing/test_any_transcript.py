"""Whatever is said, every message is kept to the byte once, or skipped and counted."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from language.storable import is_storable
from language.transcripts import ROLES, Transcript, Turn
from palace.models import Drawer
from palace.storage.filing.file import file_transcript
from tests.hypothesis_profiles import examples

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
ZONES = st.just(UTC) | st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
TURNS = st.builds(
    Turn,
    external_id=st.sampled_from(("1", "2", "3")) | ANY_TEXT,
    role=st.sampled_from(ROLES),
    text=ANY_TEXT,
    said_at=st.datetimes(timezones=ZONES),
    speaker=ANY_TEXT,
)
TRANSCRIPTS = st.builds(
    Transcript,
    source=st.just("plain"),
    external_id=ANY_TEXT,
    title=ANY_TEXT,
    turns=st.lists(TURNS, max_size=6).map(tuple),
    agent=ANY_TEXT,
)


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(transcript=TRANSCRIPTS)
def test_every_message_is_kept_once_or_counted(palace, transcript):
    with transaction.atomic():
        filed = file_transcript(palace, transcript)
        kept = list(Drawer.objects.within(palace).order_by("position"))
        said = [turn.text for turn in transcript.turns if turn.text.strip()]
        assert filed.stored == len(kept)
        assert filed.stored + sum(filed.skipped.values()) == len(transcript.turns)
        remaining = iter(said)
        assert all(drawer.text in remaining for drawer in kept), "In the order they were said."
        assert all(is_storable(drawer.text) for drawer in kept)

        again = file_transcript(palace, transcript)
        assert again.stored == 0
        assert Drawer.objects.within(palace).count() == len(kept)
        transaction.set_rollback(True)

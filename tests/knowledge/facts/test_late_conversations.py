"""Conversations older than what is known: judged together, in the order of saying."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import learn_unread, remember
from palace.models import Drawer, Fact, Statement
from palace.storage.transcript_filing import file_transcript

pytestmark = pytest.mark.django_db
START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)
HOMES = ("Rome", "Porto", "Oslo", "Bonn")


def import_older(palace):
    for day, home in enumerate(HOMES):
        turn = Turn(f"m{day}", "user", f"I live in {home}.", START + timedelta(days=day))
        file_transcript(palace, Transcript("import", f"talk-{day}", "", (turn,)))
    Drawer.objects.filter(palace=palace).update(mined_at=timezone.now())


def test_many_of_them_take_one_judging_of_all(palace):
    remember(palace, "I live in Berlin.", now=START + timedelta(days=300))
    import_older(palace)
    with CaptureQueriesContext(connection) as asked:
        assert learn_unread(palace)
    judgings = [query for query in asked if '"last_said"' in query["sql"]]
    assert len(judgings) == 1
    assert [fact.object for fact in Fact.objects.within(palace).active()] == ["Berlin"]
    for day, home in enumerate(HOMES):
        facts = Fact.objects.within(palace).true_at(START + timedelta(days=day, hours=1))
        assert [fact.object for fact in facts] == [home]
    assert Statement.objects.filter(palace=palace).count() == 5
    assert not Drawer.objects.unread().exists()

"""A palace that was lived in, damage to it, and what an audit finds."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat.mining_queue import remember
from chat.models import Conversation, Message
from config.audit import audit_palace
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import Fact, ImportJob
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import BATTERY, transcript
from tests.furnished_palaces import furnish


def failed(palace):
    return {each.check: each.wrong for each in audit_palace(palace) if each.wrong}


@pytest.fixture
def chatted(palace):
    """Alice's palace with imports, a mined chat, facts, an episode and a recall on record."""
    furnish(palace, "chatted", live)
    assert Fact.objects.within(palace).exclude(supersedes=None).exists()
    return palace


def live(palace):
    """A fact replaces another, which the audit follows."""
    for place, text in enumerate(("I live in Lisbon.", "I moved, and live in Porto now.")):
        mine(palace, transcript(text, "Noted.", id=f"home-{place}"))
        learn_unread(palace)
    mine(palace, BATTERY)
    recall(palace, RecallRequest("Where do I live?"))
    chat(palace, "Our bees swarmed — thrice.\n", "Check the queen cells.")
    write_due_episodes(palace)
    ImportJob.objects.create(palace=palace, status=ImportJob.Status.DONE)


def chat(palace, *texts):
    now = timezone.now()
    conversation = Conversation.objects.create(palace=palace, title="Bees", spoke_at=now)
    for place, text in enumerate(texts):
        Message.objects.create(
            palace=palace,
            conversation=conversation,
            position=place,
            role=("user", "assistant")[place % 2],
            text=text,
            said_at=now,
        )
    remember(conversation)


@pytest.fixture
def damage(db):
    """Writes what foreign keys and triggers would refuse; the test's transaction ends with it."""

    def write(palace, statements):
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in statements.split(";"):
                cursor.execute(statement, {"palace": palace.pk})
            assert cursor.rowcount
            cursor.execute("SET LOCAL session_replication_role = origin")

    yield write
    transaction.set_rollback(True)

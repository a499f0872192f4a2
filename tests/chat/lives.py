"""A life that asks a model for all it can be asked for."""

from __future__ import annotations

from datetime import UTC, datetime

from language.transcripts import Transcript, Turn
from palace.knowledge.dreaming import dream
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.mining.pipeline import mine
from palace.recall import RecallRequest, recall
from tests.chat.conftest import finished, start
from tests.conversations import BATTERY

QUESTION = "Who overheated the wire?"
SAID_AT = datetime(2025, 4, 2, 18, tzinfo=UTC)
NORA = Transcript(
    "plain",
    "nora",
    "Nora in Lisbon",
    (
        Turn("1", "user", "My sister Nora lives in Lisbon. I am allergic to peanuts.", SAID_AT),
        Turn("2", "assistant", "I will keep the peanuts in mind.", SAID_AT),
    ),
)


def live_through(palace):
    """All that a model can be asked for, once."""
    mine(palace, BATTERY)
    mine(palace, NORA)
    learn_unread(palace)
    write_due_episodes(palace)
    recall(palace, RecallRequest(QUESTION, rerank=True))
    dream(palace, with_model=True)
    finished(start(palace, QUESTION))

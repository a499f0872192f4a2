"""Messages stored as memories unchanged, without extraction and judging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction

from language.facts import USER, Candidate, Judgement, Thing, Verdict, Words
from language.transcripts import Role, Transcript, Turn
from palace.knowledge.facts.fact_learning import Learnt, filed_unread, mark_read
from palace.knowledge.facts.fact_writer import Writer
from palace.knowledge.facts.ingestion_options import Scope
from palace.knowledge.facts.row_conversion import Decision
from palace.models import Drawer, Palace
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space

# Roles whose messages become memories; instructions and answers of tools are only filed.
VERBATIM_ROLES: tuple[Role, ...] = ("user", "assistant")
# Unknown to the rules of judging, so later messages neither change nor end such a memory.
PREDICATE = "note"
AS_IT_IS = "stored as it is"


def store_verbatim(
    palace: Palace,
    turns: Sequence[Turn],
    *,
    agent: str = "",
    run: str = "",
    conversation: str,
    metadata: Mapping[str, Any] | None = None,
    source: str = "api",
) -> Learnt:
    """File messages, and make each one a memory with its text; arguments as `remember`.

    Filing and writing are one transaction: a worker would extract from what is only filed.
    """
    space, scope = active_space(), Scope(source, agent, run, metadata or {})
    filed = tuple(replace(turn, only_for=agent) for turn in turns)
    with transaction.atomic():
        palace.lock()
        transcript = Transcript(source, run or conversation, "", filed, agent, is_request=True)
        drawers = filed_unread(palace, transcript)
        kept = mark_read(palace, drawers)
        writer = Writer(palace, space, scope, drawers)
        written = [
            writer.write(_decision(drawer, place), drawer.text, None)
            for place, drawer in enumerate(drawers)
            if drawer.pk in kept and drawer.role in VERBATIM_ROLES and drawer.text.strip()
        ]
    lines = [line for line in written if line]
    fill_missing(palace, space, [line.fact for line in lines if line.fact])
    return Learnt(lines)


def _decision(drawer: Drawer, place: int) -> Decision:
    candidate = Candidate(
        type="fact",
        subject=Thing(drawer.speaker or USER, "person"),
        predicate=PREDICATE,
        object="",
        text=drawer.text,
        words=(Words(place, 0, len(drawer.text)),),
        confidence=1.0,
    )
    return Decision(Judgement(Verdict.ADD, candidate, why=AS_IT_IS))

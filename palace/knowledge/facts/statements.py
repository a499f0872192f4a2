"""Candidates kept as statements, and read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from language.facts import Candidate, Change, Judgement, Known, Thing, Verdict, Words
from palace.knowledge.facts.scope import Scope
from palace.models import Drawer, Palace, Statement

_TIMES = ("valid_from", "valid_to")


def record(
    palace: Palace,
    drawers: Sequence[Drawer],
    told: Sequence[tuple[Candidate, Judgement | None]],
    scope: Scope,
) -> list[Statement]:
    """Keep candidates, each with what a model decided; call it in the reading's transaction.

    Args:
        drawers: Those of the window, in the order that the candidates' words count them by.
    """
    counts: dict[int, int] = {}
    rows = []
    for candidate, judgement in told:
        drawer = drawers[candidate.words[0].turn]
        ordinal = counts.get(drawer.pk, 0)
        counts[drawer.pk] = ordinal + 1
        rows.append(
            Statement(
                palace=palace,
                drawer=drawer,
                ordinal=ordinal,
                by=scope.by,
                agent=scope.agent,
                run=scope.run,
                metadata=dict(scope.metadata),
                content=_written(candidate, drawers),
                judged=_decision(judgement) if judgement else None,
            )
        )
    # What is read twice, after a process has died, is kept once.
    held = Statement.objects.filter(palace=palace, drawer__in=list(counts)).select_related("drawer")
    there = {(row.drawer_id, row.ordinal): row for row in held}
    Statement.objects.bulk_create(
        [row for row in rows if (row.drawer_id, row.ordinal) not in there]
    )
    return [there.get((row.drawer_id, row.ordinal), row) for row in rows]


def candidate_of(statement: Statement) -> Candidate:
    """The candidate; its words count messages in the order of `messages_of`."""
    content = dict(statement.content)
    names = messages_of(statement)
    words = tuple(Words(names.index(name), *span) for name, *span in content.pop("words"))
    subject, thing = content.pop("subject"), content.pop("thing")
    content |= {name: _time(content[name]) for name in _TIMES}
    content |= {"words": words, "tags": tuple(content["tags"]), "subject": Thing(**subject)}
    return Candidate(**content, thing=Thing(**thing) if thing else None)


def messages_of(statement: Statement) -> list[str]:
    """Ids of the messages of its conversation that it rests on."""
    return list(dict.fromkeys(name for name, *_ in statement.content["words"]))


def decided(statement: Statement, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
    """What a model decided, if the fact it named is known; None: rules are to judge."""
    given: Mapping[str, Any] | None = statement.judged
    if given is None:
        return None
    named = given["fact"]
    fact = next((one.fact for one in known if one.fact.text == named), None)
    if named is not None and fact is None:
        return None
    verdict, change = Verdict(given["verdict"]), Change(given["change"])
    return Judgement(verdict, candidate, fact, change, given["text"], given["why"])


def _written(candidate: Candidate, drawers: Sequence[Drawer]) -> dict[str, Any]:
    words = [(drawers[span.turn].external_id, span.start, span.end) for span in candidate.words]
    times = {name: getattr(candidate, name) for name in _TIMES}
    iso = {name: moment.isoformat() if moment else None for name, moment in times.items()}
    return asdict(replace(candidate, words=())) | iso | {"words": words}


def _decision(judgement: Judgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict,
        "change": judgement.change,
        "text": judgement.text,
        "why": judgement.why,
        "fact": judgement.fact.text if judgement.fact else None,
    }


def _time(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None

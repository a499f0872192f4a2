"""Traces of recalls and cases, rid of the words of drawers that are purged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from palace.aaak import Pointer
from palace.models import (
    Drawer,
    ExpectedDrawer,
    Palace,
    Passage,
    RecallCase,
    RecollectionTrace,
)
from palace.recall.context_builder import without
from palace.recall.query import as_asked


@dataclass(frozen=True, slots=True)
class _Put:
    """A drawer as it may stand in a block: under a pointer, whole or with one of its passages."""

    drawer: Drawer
    pointer: Pointer
    passage: tuple[int, int]


def scrub_traces(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Take the drawers' words out of the blocks they were put into, and out of the questions.

    A question goes where it was the very text of one of them. What remains says which drawers
    were found, and how good they were, in numbers. Call it in the transaction that deletes them.
    """
    by_uuid = {str(drawer.uuid): drawer for drawer in drawers}
    questions = {as_asked(drawer.text) for drawer in drawers}
    traces = RecollectionTrace.objects.filter(
        palace=palace, pk__in=_concerned(palace, list(by_uuid), list(questions))
    )
    passages = _passages(palace, drawers)
    changed = []
    read = traces.only("query", "reading", "hits", "facts", "carried", "context")
    for trace in read.order_by("pk").iterator():
        found = [
            (by_uuid[hit["drawer"]], Pointer.parse(hit["pointer"]))
            for hit in (*trace.hits, *trace.facts, *trace.carried)
            if hit["drawer"] in by_uuid
        ]
        trace.context = without(
            trace.context,
            [
                _Put(drawer, pointer, span)
                for drawer, pointer in found
                for span in passages[drawer.pk]
            ],
        )
        if trace.query in questions:
            trace.query, trace.reading = "", {}
        changed.append(trace)
    RecollectionTrace.objects.bulk_update(changed, ["query", "reading", "context"], batch_size=200)


def scrub_cases(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Delete the cases that expect nothing but these drawers, or asked with the text of one.

    From the others the drawers go by themselves. Call it in the transaction that deletes them.
    """
    cases = RecallCase.objects.within(palace)
    expected = ExpectedDrawer.objects.filter(palace=palace)
    concerned = expected.filter(drawer__in=[drawer.pk for drawer in drawers]).values("case")
    others = expected.exclude(drawer__in=[drawer.pk for drawer in drawers]).values("case")
    cases.filter(pk__in=concerned).exclude(pk__in=others).delete()
    cases.filter(query__in={as_asked(drawer.text) for drawer in drawers}).delete()


def _concerned(palace: Palace, uuids: list[str], questions: list[str]) -> list[int]:
    """Keys of the traces that found one of the drawers, or a fact that cites it.

    And of those that asked one of the questions.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM palace_recollectiontrace WHERE palace_id = %s AND (query = ANY(%s)"
            " OR EXISTS (SELECT FROM jsonb_array_elements(hits || facts || carried) hit"
            " WHERE hit ->> 'drawer' = ANY(%s)))",
            [palace.pk, questions, uuids],
        )
        return [key for (key,) in cursor.fetchall()]


def _passages(palace: Palace, drawers: Sequence[Drawer]) -> dict[int, list[tuple[int, int]]]:
    """By drawer the spans a block may have shown, the whole of it first."""
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for drawer in drawers:
        spans[drawer.pk].append((0, len(drawer.text)))
    rows = Passage.objects.filter(palace=palace, drawer__in=[d.pk for d in drawers]).order_by()
    for key, start, end in rows.values_list("drawer_id", "start", "end"):
        spans[key].append((start, end))
    return spans

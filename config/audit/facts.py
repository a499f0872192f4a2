"""Checks of facts: one active row for each single-valued key, complete chains, evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from config.audit.finding import Check, Finding, finding, rows_breaking
from palace.models import Fact, Palace


def _points_into(column: str, table: str) -> Check:
    return rows_breaking(
        f"fact-{column.removesuffix('_id').replace('_', '-')}",
        f"What a fact's `{column}` names is there, in the same palace.",
        f"SELECT f.uuid FROM palace_fact f LEFT JOIN {table} t"  # noqa: S608 - names of ours.
        f" ON t.palace_id = f.palace_id AND t.id = f.{column}"
        f" WHERE f.palace_id = %(palace)s AND f.{column} IS NOT NULL AND t.id IS NULL",
    )


def chains_end(palace: Palace) -> Finding:
    """The chain of `supersedes` from any fact must end: there are no cycles."""
    chains = Fact.objects.within(palace).order_by()
    before = dict(chains.values_list("pk", "supersedes_id"))
    names = dict(chains.values_list("pk", "uuid"))
    ends: set[int] = set()
    circles: list[int] = []
    for start in before:
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and at in before and at not in ends and at not in path:
            path[at] = None
            at = before[at]
        if at is not None and at in path:
            circles.append(at)
        ends |= path.keys()
    return finding(
        "chain-end", "No fact supersedes itself through others.", [names[key] for key in circles]
    )


def chains_have_one_head(palace: Palace) -> Finding:
    """Exactly one version of a memory is not superseded by another version."""
    rows = Fact.objects.within(palace).order_by("pk")
    versions = list(rows.values_list("pk", "memory", "supersedes_id"))
    memory_of = {key: memory for key, memory, _ in versions}
    before = {key: old for key, _, old in versions}
    followed = {_version_before(key, before, memory_of) for key in before}
    heads = Counter(memory for key, memory, _ in versions if key not in followed)
    wrong = [memory for memory, count in heads.items() if count != 1]
    return finding("chain-head", "The versions of a memory are one chain with one head.", wrong)


def _version_before(
    fact: int, before: Mapping[int, int | None], memory_of: Mapping[int, UUID]
) -> int | None:
    """The next row down the chain that is a version of the same memory."""
    seen = {fact}
    at = before[fact]
    while at is not None and at in before and at not in seen:
        if memory_of[at] == memory_of[fact]:
            return at
        seen.add(at)
        at = before[at]
    return None


# A purge empties texts of lines, and a row may be closed when it is written: that has no line.
_NOT_AS_ITS_HISTORY = """
SELECT f.memory FROM palace_fact f WHERE f.palace_id = %(palace)s AND f.retired_at IS NULL
  AND NOT EXISTS (SELECT FROM palace_factevent e WHERE e.palace_id = f.palace_id
    AND e.memory = f.memory AND e.event <> 'DELETE' AND coalesce(e.new_text, f.text) = f.text)
UNION SELECT e.memory FROM palace_factevent e WHERE e.palace_id = %(palace)s
  AND e.old_text IS NOT NULL AND NOT EXISTS (SELECT FROM palace_factevent b
    WHERE b.palace_id = e.palace_id AND b.memory = e.memory AND b.id < e.id
    AND b.event <> 'DELETE' AND coalesce(b.new_text, e.old_text) = e.old_text)
UNION SELECT f.memory FROM (
    SELECT DISTINCT ON (memory) memory, retired_at, recorded_at FROM palace_fact
    WHERE palace_id = %(palace)s ORDER BY memory, retired_at DESC NULLS FIRST, id DESC) f
  JOIN (
    SELECT DISTINCT ON (memory) memory, event FROM palace_factevent
    WHERE palace_id = %(palace)s ORDER BY memory, id DESC) e ON e.memory = f.memory
  WHERE CASE WHEN e.event = 'DELETE' THEN f.retired_at IS NULL
    ELSE f.retired_at > f.recorded_at END
"""
CHECKS = (
    rows_breaking(
        "single-value",
        "Of what a subject has one of, one fact is active for each agent and run.",
        "SELECT min(uuid::text) FROM palace_fact WHERE palace_id = %(palace)s"
        " AND retired_at IS NULL AND single"
        " GROUP BY subject_id, predicate, aspect, agent, run HAVING count(*) > 1",
    ),
    rows_breaking(
        "active-version",
        "At most one version of a memory is active.",
        "SELECT memory FROM palace_fact WHERE palace_id = %(palace)s AND retired_at IS NULL"
        " GROUP BY memory HAVING count(*) > 1",
    ),
    rows_breaking(
        "retired-for-a-reason",
        "A retired fact says why, and an active one says nothing of it.",
        "SELECT uuid FROM palace_fact WHERE palace_id = %(palace)s"
        " AND (retired_at IS NULL) <> (fate = '')",
    ),
    rows_breaking(
        "fact-period",
        "A fact is not over before it begins, in the world or on record.",
        "SELECT uuid FROM palace_fact WHERE palace_id = %(palace)s"
        " AND (valid_to < valid_from OR retired_at < recorded_at)",
    ),
    rows_breaking(
        "fact-history",
        "A memory's history begins with what it said first, and ends with what it says now.",
        _NOT_AS_ITS_HISTORY,
    ),
    _points_into("subject_id", "palace_entity"),
    _points_into("object_entity_id", "palace_entity"),
    _points_into("supersedes_id", "palace_fact"),
    _points_into("opened_by_id", "palace_statement"),
    _points_into("closed_by_id", "palace_statement"),
    chains_end,
    chains_have_one_head,
    rows_breaking(
        "chain-whole",
        "What a fact took the place of is reachable by `supersedes`.",
        "SELECT f.uuid FROM palace_fact f WHERE f.palace_id = %(palace)s"
        " AND f.fate IN ('superseded', 'refined') AND NOT EXISTS ("
        "SELECT FROM palace_fact n WHERE n.palace_id = f.palace_id AND n.supersedes_id = f.id)",
    ),
    rows_breaking(
        "evidence-span",
        "Evidence is a fact of the palace and characters that its drawer has.",
        "SELECT e.id FROM palace_evidence e"
        " LEFT JOIN palace_drawer d ON d.palace_id = e.palace_id AND d.id = e.drawer_id"
        " LEFT JOIN palace_fact f ON f.palace_id = e.palace_id AND f.id = e.fact_id"
        " WHERE e.palace_id = %(palace)s AND (f.id IS NULL OR d.id IS NULL"
        ' OR e.start > e."end" OR e."end" > length(d.text))',
    ),
    rows_breaking(
        "fact-grounds",
        "An active fact that was learnt from a message rests on words.",
        "SELECT f.uuid FROM palace_fact f WHERE f.palace_id = %(palace)s"
        " AND f.retired_at IS NULL AND f.opened_by_id IS NOT NULL AND NOT EXISTS ("
        "SELECT FROM palace_evidence e WHERE e.palace_id = f.palace_id AND e.fact_id = f.id)",
    ),
    rows_breaking(
        "statement-words",
        "A statement's words are characters of messages of its conversation.",
        "SELECT DISTINCT s.id FROM palace_statement s"
        " LEFT JOIN palace_drawer o ON o.palace_id = s.palace_id AND o.id = s.drawer_id"
        " CROSS JOIN LATERAL jsonb_array_elements(s.content -> 'words') w"
        " LEFT JOIN palace_drawer d ON d.palace_id = s.palace_id AND d.source = o.source"
        " AND d.conversation = o.conversation AND d.external_id = w ->> 0"
        " WHERE s.palace_id = %(palace)s AND (o.id IS NULL OR d.id IS NULL"
        " OR (w ->> 1)::int > (w ->> 2)::int OR (w ->> 2)::int > length(d.text))",
    ),
)

"""Checks of facts: one active row for each single-valued key, complete chains, evidence. Checks of
references: each leads to a row of the palace, and no row is an orphan.

Traces and ledgers name drawers and facts of their palace, or purged ones. A purge removes texts
from traces but keeps the ids, and records the ids of deleted rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db import connection

from config.audit.drawers import Check, Finding, finding, rows_breaking
from palace.models import AcceptedMessage, Fact, ImportJob, Palace
from palace.transfer.spools import old_spools, spool_path
from palace.working.ledger import all_items

KINDS = ("drawer", "fact")
# The ids in the ledgers of a palace, by kind.
Named = Mapping[str, set[UUID]]
_NAMED = """
SELECT DISTINCT hit ->> %(field)s FROM palace_recollectiontrace t,
  jsonb_array_elements(t.hits || t.facts || t.carried) hit
WHERE t.palace_id = %(palace)s AND hit ->> %(field)s IS NOT NULL
"""
_OWNERS = {
    "drawer": "SELECT uuid, palace_id FROM palace_drawer WHERE uuid = ANY(%s)",
    "fact": "SELECT uuid, palace_id FROM palace_fact WHERE uuid = ANY(%s)",
    "memory": "SELECT memory, palace_id FROM palace_fact WHERE memory = ANY(%s)",
}


def drawers_known_as_purged(palace: Palace, uuids: Collection[UUID]) -> set[UUID]:
    rows = AcceptedMessage.objects.filter(palace=palace, uuid__in=uuids).exclude(purged_at=None)
    return set(rows.values_list("uuid", flat=True))


def unexplained(palace: Palace, kind: str, named: Collection[UUID]) -> list[UUID]:
    """The ids that belong to another palace, or that no deletion explains.

    Args:
        kind: `drawer`, `fact` or `memory`. Facts are deleted without a count being kept, so only
            those of another palace are reported. As many drawers may be missing as were purged
            before purges kept their ids.
    """
    owners: dict[UUID, set[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_OWNERS[kind], [list(named)])
        for uuid, owner in cursor.fetchall():
            owners.setdefault(uuid, set()).add(owner)
    foreign = [uuid for uuid in named if uuid in owners and palace.pk not in owners[uuid]]
    gone = [uuid for uuid in named if uuid not in owners]
    lost = []
    if kind == "drawer" and gone:
        purged = drawers_known_as_purged(palace, gone)
        lost = [uuid for uuid in gone if uuid not in purged]
    return sorted([*foreign, *(lost if len(lost) > palace.purged_unnamed else ())])


def traces_name_what_there_was(palace: Palace) -> Finding:
    wrong = [
        each
        for kind in ("drawer", "memory")
        for each in unexplained(palace, kind, _named(palace, kind))
    ]
    return finding(
        "trace-ids",
        "The drawers and memories that a recall's record names are of this palace, or were purged.",
        wrong,
    )


def candidates_are_of_the_palace(palace: Palace) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT d.uuid FROM palace_recollectiontrace t"
            " CROSS JOIN LATERAL ("
            " SELECT key::bigint FROM jsonb_array_elements_text(t.candidates -> 'drawers') key"
            # Older traces have a row for each.
            " UNION ALL SELECT (r ->> 0)::bigint"
            " FROM jsonb_array_elements(t.candidates -> 'rows') r"
            ") named (id) JOIN palace_drawer d ON d.id = named.id AND d.palace_id <> t.palace_id"
            " WHERE t.palace_id = %s ORDER BY 1",
            [palace.pk],
        )
        wrong = [uuid for (uuid,) in cursor.fetchall()]
    return finding("trace-candidates", "No candidate of a recall is of another palace.", wrong)


def _named(palace: Palace, field: str) -> set[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, {"palace": palace.pk, "field": field})
        return {UUID(name) for (name,) in cursor.fetchall()}


def read_ledgers(palace: Palace) -> Named:
    """Call it before the snapshot, which then has all that a ledger names, or it was deleted.

    Raises:
        WorkingMemoryAway: Redis does not answer.
    """
    named: defaultdict[str, set[UUID]] = defaultdict(set)
    for item in all_items(palace):
        kind, _, name = item.partition(":")
        # A program may name an item anything, so a name may only look like an id.
        if kind in KINDS and (uuid := _uuid(name)):
            named[kind].add(uuid)
    return named


def check_ledgers(palace: Palace, named: Named) -> Finding:
    wrong = [each for kind in KINDS for each in unexplained(palace, kind, named.get(kind, set()))]
    return finding(
        "ledger-ids",
        "The drawers and facts that ledgers name are of this palace, or were purged.",
        wrong,
    )


def _uuid(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def imports_have_their_files(palace: Palace) -> Finding:
    jobs = ImportJob.objects.filter(palace=palace, status__in=ImportJob.UNFINISHED).order_by("pk")
    wrong = [job.uuid for job in jobs if not spool_path(job).is_file()]
    return finding(
        "import-file", "The prepared file of an import that is not finished is there.", wrong
    )


def files_have_their_imports() -> Finding:
    """Each file of an import has its job; files do not name their palace."""
    wrong = sorted(path.name for path in old_spools())
    return finding("import-orphans", "No prepared file is left without its import.", wrong)


CHECKS_OF_REFERENCES = (
    traces_name_what_there_was,
    candidates_are_of_the_palace,
    rows_breaking(
        "empty-closet",
        "A closet holds drawers.",
        "SELECT c.uuid FROM palace_closet c WHERE c.palace_id = %(palace)s AND NOT EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = c.palace_id AND d.closet_id = c.id)",
    ),
    rows_breaking(
        "empty-room",
        "A room holds drawers.",
        "SELECT r.uuid FROM palace_room r WHERE r.palace_id = %(palace)s AND NOT EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = r.palace_id AND d.room_id = r.id)",
    ),
    rows_breaking(
        "empty-wing",
        "A wing, but for the unsorted one, holds rooms.",
        "SELECT w.uuid FROM palace_wing w WHERE w.palace_id = %(palace)s AND w.number > 0"
        " AND NOT EXISTS (SELECT FROM palace_room r"
        " WHERE r.palace_id = w.palace_id AND r.wing_id = w.id)",
    ),
    rows_breaking(
        "unknown-entity",
        "An entity is mentioned, or a fact is about it.",
        "SELECT e.uuid FROM palace_entity e WHERE e.palace_id = %(palace)s"
        " AND NOT EXISTS (SELECT FROM palace_mention m"
        " WHERE m.palace_id = e.palace_id AND m.entity_id = e.id)"
        " AND NOT EXISTS (SELECT FROM palace_fact f WHERE f.palace_id = e.palace_id"
        " AND (f.subject_id = e.id OR f.object_entity_id = e.id))",
    ),
    rows_breaking(
        "episode-messages",
        "An episode says of how many messages it is, unless it is to be written again.",
        "SELECT e.uuid FROM palace_episode e WHERE e.palace_id = %(palace)s"
        " AND e.made_by <> 'caller' AND e.trashed_at IS NULL"
        " AND NOT EXISTS (SELECT FROM palace_room r WHERE r.palace_id = e.palace_id"
        " AND r.source = e.source AND r.external_id = e.conversation"
        " AND r.episode_due_at IS NOT NULL)"
        " AND e.messages IS DISTINCT FROM (SELECT count(*) FROM palace_drawer d"
        " WHERE d.palace_id = %(palace)s AND d.source = e.source"
        " AND d.conversation = e.conversation"
        # Of a palace that is being put back, drawers have their topics, and are indexed later.
        " AND d.trashed_at IS NULL AND (d.mined_at IS NOT NULL OR d.closet_id IS NOT NULL))",
    ),
    imports_have_their_files,
)


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
CHECKS_OF_FACTS = (
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

"""What a dream finds, and its proposals to the user; each change is proposed once.

Duplicate and contradictory facts are found here, without a model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

import numpy as np
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import salted_hmac

from language.english.judging import words_of
from language.english.judging.comparison import (
    FAR,
    Statement,
    contradict,
    opinions_against_tastes,
    pairs_sharing_words,
    say_the_same,
)
from language.facts import FactType
from palace.models import (
    Activity,
    Drawer,
    EmbeddingSpace,
    Fact,
    Palace,
    Proposal,
    ProposalFact,
    ProposalQuote,
)
from palace.storage.indexing.fact_vectors import Vector, fetch

MadeBy = Literal["model", "rules"]
Kind = Proposal.Kind
# Kinds that add a fact and change none.
ADDING = (Kind.ANTI_PATTERN, Kind.PREFERENCE)
# Maximum per dream, so that a user can read them; the next dream proposes the rest.
MOST_PROPOSED = 300

_SOURCE, _BESIDE = ProposalFact.Role.SOURCE, ProposalFact.Role.BESIDE
SAYS_THE_SAME = "they say the same"
AT_ODDS = "both cannot be so at once; the newer one holds"

# Rows of one product of vectors.
ROWS = 500
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Quote:
    """Characters `start` to `end` (exclusive) of a drawer, given by its key."""

    drawer: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class After:
    """The fact after the change."""

    text: str
    category: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def after_of(payload: Mapping[str, Any]) -> After | None:
    """Read the `after` of a `Finding.payload`."""
    after = payload["after"]
    if after is None:
        return None
    return After(after["text"], after["category"], tuple(after["tags"]), after["metadata"])


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Attributes:
        sources: Facts that become inactive when it is accepted.
        beside: Facts that stay active, and are the reason.
        quotes: The quoted messages, if it is about no fact.
        after: None if nothing replaces the sources.
        why: A few words for the user.
    """

    kind: Kind
    made_by: MadeBy
    sources: tuple[Fact, ...] = ()
    beside: tuple[Fact, ...] = ()
    quotes: tuple[Quote, ...] = ()
    after: After | None = None
    why: str = ""

    def fingerprint(self) -> UUID:
        """Identify the change: the same for the same change of the same statements.

        It does not depend on the model's wording, which differs each night, and does not reveal
        any text.
        """
        if self.kind in ADDING and self.after is not None:
            parts = [self.after.category, *sorted(words_of(self.after.text))]
        else:
            parts = sorted(f"{fact.memory} {fact.text}" for fact in (*self.sources, *self.beside))
        content = "\0".join(f"{len(part)} {part}" for part in (self.kind.value, *parts))
        return UUID(salted_hmac("proposals", content, algorithm="sha256").hexdigest()[:32])

    def payload(self) -> dict[str, Any]:
        return {
            "before": [_described(fact) for fact in (*self.sources, *self.beside)],
            "after": _as_json(self.after) if self.after else None,
            "why": self.why,
            "made_by": self.made_by,
        }


def _as_json(after: After) -> dict[str, Any]:
    return {
        "text": after.text,
        "category": after.category,
        "tags": list(after.tags),
        "metadata": dict(after.metadata),
    }


def _described(fact: Fact) -> dict[str, Any]:
    return {
        "memory": str(fact.memory),
        "text": fact.text,
        "category": fact.category,
        "tags": fact.tags,
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
    }


def same_scope(facts: Sequence[Fact]) -> bool:
    """Whether all facts have the same agent and run."""
    return len({(fact.agent, fact.run) for fact in facts}) <= 1


def propose(palace: Palace, findings: Sequence[Finding], dream: Activity) -> Counter[str]:
    """Store new findings as proposals; returns their number by kind. The caller locks the palace.

    Skips findings that were decided on or are open, and those whose facts or quotes are gone.
    Stale proposals are renewed when they are found again.
    """
    made: Counter[str] = Counter()
    known = _known(palace, findings)
    for finding in findings:
        if made.total() >= MOST_PROPOSED:
            break
        if finding.fingerprint() in known:
            continue
        if not _stands(palace, finding) or _is_taken(palace, finding):
            continue
        _write(palace, finding, dream)
        known.add(finding.fingerprint())
        made[finding.kind.value] += 1
    return made


def mark_stale(palace: Palace) -> int:
    """Mark proposals whose facts or quotes have changed as stale; returns their number."""
    proposed = Proposal.objects.within(palace).filter(status=Proposal.Status.PROPOSED)
    waiting = Proposal.objects.within(palace).waiting().values("pk")
    return proposed.exclude(pk__in=waiting).update(status=Proposal.Status.STALE)


def _known(palace: Palace, findings: Sequence[Finding]) -> set[UUID]:
    """Fingerprints of proposals that are open or decided."""
    there = Proposal.objects.within(palace).exclude(status=Proposal.Status.STALE)
    fingerprints = [finding.fingerprint() for finding in findings]
    return set(there.filter(fingerprint__in=fingerprints).values_list("fingerprint", flat=True))


def _stands(palace: Palace, finding: Finding) -> bool:
    facts = [fact.pk for fact in (*finding.sources, *finding.beside)]
    active = Fact.objects.within(palace).active().filter(pk__in=facts).count()
    drawers = {quote.drawer for quote in finding.quotes}
    kept = Drawer.objects.within(palace).kept().filter(pk__in=drawers).count()
    return active == len(facts) and kept == len(drawers)


def _is_taken(palace: Palace, finding: Finding) -> bool:
    """Whether a proposal of the same kind is open for one of its facts."""
    if not finding.sources:
        return False
    among = ProposalFact.objects.filter(
        palace=palace, proposal=OuterRef("pk"), role=_SOURCE, fact__in=finding.sources
    )
    waiting = Proposal.objects.within(palace).waiting().filter(kind=finding.kind)
    others = waiting.exclude(fingerprint=finding.fingerprint())
    return others.filter(Exists(among)).exists()


def _write(palace: Palace, finding: Finding, dream: Activity) -> None:
    """Create a proposal, or renew the stale one."""
    fingerprint = finding.fingerprint()
    proposal = Proposal.objects.within(palace).filter(fingerprint=fingerprint).first()
    if proposal is None:
        proposal = Proposal(palace=palace, fingerprint=fingerprint, kind=finding.kind)
    proposal.status, proposal.payload = Proposal.Status.PROPOSED, finding.payload()
    proposal.dream, proposal.made_at = dream, timezone.now()
    proposal.save()
    _write_ground(palace, proposal, finding)


def _write_ground(palace: Palace, proposal: Proposal, finding: Finding) -> None:
    """Link facts and quotes, in place of those of a stale proposal."""
    for rows in (ProposalFact, ProposalQuote):
        rows._default_manager.filter(palace=palace, proposal=proposal).delete()
    roles = [(fact, _SOURCE) for fact in finding.sources]
    roles += [(fact, _BESIDE) for fact in finding.beside]
    ProposalFact.objects.bulk_create(
        ProposalFact(palace=palace, proposal=proposal, fact=fact, role=role) for fact, role in roles
    )
    ProposalQuote.objects.bulk_create(
        [
            ProposalQuote(
                palace=palace,
                proposal=proposal,
                drawer_id=quote.drawer,
                start=quote.start,
                end=quote.end,
            )
            for quote in finding.quotes
        ],
        ignore_conflicts=True,
    )


def find_locally(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> list[Finding]:
    """Merges and contradictions among these facts, by rules and the vectors there are."""
    rows = {fact.pk: fact for fact in sorted(facts, key=_age)}
    statements = [_statement_of(fact) for fact in rows.values()]
    pairs = _alike(statements, fetch(palace, space, [fact.pk for fact in facts]))
    clusters = _clusters(statements, pairs)
    kept = {one.key: cluster[0].key for cluster in clusters for one in cluster}
    findings = [_merge(cluster, rows) for cluster in clusters]
    seen: set[_Pair] = set()
    for older, newer in _conflicts(statements, pairs, rows):
        # A merged fact is represented by the oldest of its cluster, and is not ended as well.
        ends = kept.get(older.key, older.key), kept.get(newer.key, newer.key)
        if ends not in seen and older.key not in kept:
            findings.append(_contradiction(rows[older.key], rows[newer.key]))
        seen.add(ends)
    return findings


def _statement_of(row: Fact) -> Statement:
    """A row as plain values."""
    return Statement(
        key=row.pk,
        type=cast(FactType, row.type),
        scope=(row.agent, row.run),
        subject=row.subject.name,
        subject_key=row.subject_id,
        predicate=row.predicate,
        object=row.object,
        text=row.text,
        aspect=row.aspect,
        stance=row.stance,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
    )


def _merge(cluster: Sequence[Statement], rows: Mapping[int, Fact]) -> Finding:
    """Keeps the text of the fullest fact; of equally full ones, that of the oldest."""
    facts = [rows[one.key] for one in cluster]
    fullest = rows[max(cluster, key=lambda one: len(one.wording.words)).key]
    tags = dict.fromkeys(tag for fact in facts for tag in fact.tags)
    category = fullest.category or next((fact.category for fact in facts if fact.category), "")
    return Finding(
        kind=Kind.MERGE,
        made_by="rules",
        sources=tuple(facts),
        after=After(fullest.text, category, tuple(tags)),
        why=SAYS_THE_SAME,
    )


def _contradiction(older: Fact, newer: Fact) -> Finding:
    return Finding(
        kind=Kind.CONTRADICTION,
        made_by="rules",
        sources=(older,),
        beside=(newer,),
        why=AT_ODDS,
    )


def _alike(statements: Sequence[Statement], vectors: Mapping[int, Vector]) -> dict[_Pair, float]:
    """Pairs worth comparing, by place, each with its cosine; 0 where that is not known."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(statements):
        groups[one.group].append(place)
    pairs: dict[_Pair, float] = {}
    for places in groups.values():
        pairs |= _near(statements, places, vectors)
        for pair in pairs_sharing_words(statements, places):
            pairs.setdefault(pair, _cosine(statements, pair, vectors))
    return pairs


def _near(
    statements: Sequence[Statement], places: Sequence[int], vectors: Mapping[int, Vector]
) -> dict[_Pair, float]:
    known = [place for place in places if statements[place].key in vectors]
    if len(known) < 2:
        return {}
    matrix = np.stack([vectors[statements[place].key] for place in known])
    found: dict[_Pair, float] = {}
    for first in range(0, len(known), ROWS):
        cosines = matrix[first : first + ROWS] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= FAR), strict=True):
            if row + first < column:
                found[known[row + first], known[column]] = float(cosines[row, column])
    return found


def _cosine(statements: Sequence[Statement], pair: _Pair, vectors: Mapping[int, Vector]) -> float:
    first, second = (vectors.get(statements[place].key) for place in pair)
    return 0.0 if first is None or second is None else float(first @ second)


def _clusters(
    statements: Sequence[Statement], pairs: Mapping[_Pair, float]
) -> list[list[Statement]]:
    """Statements that say the same, the oldest first; each says the same as the oldest."""
    head: dict[int, int] = {}
    clusters: defaultdict[int, list[int]] = defaultdict(list)
    for (first, second), cosine in sorted(pairs.items()):
        if first in head or second in head:
            continue
        if say_the_same(statements[first], statements[second], cosine):
            clusters[first].append(second)
            head[second] = first
    return [
        [statements[first], *(statements[other] for other in others)]
        for first, others in sorted(clusters.items())
    ]


def _conflicts(
    statements: Sequence[Statement], pairs: Iterable[_Pair], rows: Mapping[int, Fact]
) -> Iterator[tuple[Statement, Statement]]:
    """Pairs that contradict each other, the older one first."""
    for first, second in sorted(pairs):
        if contradict(statements[first], statements[second]):
            yield statements[first], statements[second]
    for pair in opinions_against_tastes(statements):
        older, newer = sorted(pair, key=lambda one: _age(rows[one.key]))
        yield older, newer


def _age(fact: Fact) -> tuple[datetime, datetime, int]:
    """Sorts by how long a fact has been true, longest first; an unknown start is longest."""
    return fact.valid_from or _LONG_AGO, fact.recorded_at, fact.pk

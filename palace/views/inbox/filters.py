"""The filters of the inbox: from the address to a query, and the order of proposals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.http import Http404

from isolation.raw_sql import columns, fetch_rows, read_instance
from palace.models import Activity, Fact, Palace, Proposal, ProposalQuerySet
from palace.views.shared.query_params import get_by_uuid, query_string, read_uuid

Kind = Proposal.Kind

# Kinds that need thought come first, routine ones last.
KINDS = (
    Kind.PREFERENCE,
    Kind.ANTI_PATTERN,
    Kind.CONTRADICTION,
    Kind.OUTDATED,
    Kind.UNSURE,
    Kind.MERGE,
    Kind.REFINE,
    Kind.DROP,
)
WAITING, ROOMS, DECIDED, STALE = "", "rooms", "decided", "stale"
TABS = {WAITING: "Waiting", ROOMS: "Rooms", DECIDED: "Decided lately", STALE: "Stale"}


@dataclass(frozen=True, slots=True)
class ProposalFilter:
    """
    Attributes:
        tab: One of `TABS`.
        kind: Only this kind; empty for all.
        dream: Only proposals of this dream.
        about: Only proposals about this memory.
        select: The kind whose boxes are ticked.
    """

    tab: str = WAITING
    kind: str = ""
    dream: Activity | None = None
    about: Fact | None = None
    select: str = ""

    @classmethod
    def read(cls, palace: Palace, sent: Mapping[str, str]) -> ProposalFilter:
        """
        Raises:
            Http404: there is no such dream or memory in this palace.
        """
        tab, kind, select = (sent.get(name, "") for name in ("show", "kind", "select"))
        if tab == ROOMS:
            return cls(tab)  # The others are of proposals.
        return cls(
            tab if tab in TABS else WAITING,
            kind if kind in Kind.values else "",
            _dream(palace, sent.get("dream", "")),
            _about(palace, sent.get("about", "")),
            select if select in Kind.values else "",
        )

    @property
    def is_narrowed(self) -> bool:
        return bool(self.kind or self.dream or self.about)

    @property
    def kind_label(self) -> str:
        return str(Kind(self.kind).label) if self.kind else ""

    @property
    def query(self) -> str:
        return self.with_query()

    def with_query(self, **more: str) -> str:
        """The query string, with `more`; empty without filters."""
        asked = {
            "show": self.tab,
            "kind": self.kind,
            "dream": str(self.dream.uuid) if self.dream else "",
            "about": str(self.about.memory) if self.about else "",
        } | more
        return query_string(**asked)

    def tabs(self) -> Iterator[tuple[str, str, bool]]:
        """Label, query string, and whether it is the current one."""
        for name, label in TABS.items():
            yield label, self.with_query(show=name), name == self.tab

    def proposals(self, palace: Palace) -> ProposalQuerySet:
        """The proposals of the tab that pass the filters, the newest first; for waiting ones
        see `waiting_proposals`.
        """
        rows = Proposal.objects.within(palace)
        rows = rows.decided() if self.tab == DECIDED else stale(palace)
        if self.dream:
            rows = rows.filter(dream=self.dream)
        if self.about:
            of_it = Fact.objects.within(palace).filter(memory=self.about.memory)
            rows = rows.filter(about__palace=palace, about__fact__in=of_it).distinct()
        return rows

    def of_kind(self, rows: ProposalQuerySet) -> ProposalQuerySet:
        return rows.filter(kind=self.kind) if self.kind else rows


def stale(palace: Palace) -> ProposalQuerySet:
    """Proposals that can no longer be decided, because their facts have changed."""
    rows = Proposal.objects.within(palace)
    undecided = rows.filter(status__in=(Proposal.Status.STALE, Proposal.Status.PROPOSED))
    return undecided.exclude(pk__in=rows.waiting().values("pk")).order_by("-made_at", "-pk")


# What waits is as `ProposalQuerySet.waiting` has it. Looked for once, for the counts and the page.
_WAITING = """
WITH waiting AS MATERIALIZED (
    SELECT p.id, p.kind, p.made_at, array_position(%(kinds)s::text[], p.kind::text) AS rank
    FROM palace_proposal p WHERE p.palace_id = %(palace)s AND p.status = 'proposed'
        AND NOT EXISTS (
            SELECT FROM palace_proposalfact l
            JOIN palace_fact f ON f.palace_id = %(palace)s AND f.id = l.fact_id
            WHERE l.palace_id = %(palace)s AND l.proposal_id = p.id AND f.retired_at IS NOT NULL
        ) AND NOT EXISTS (
            SELECT FROM palace_proposalquote q
            JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = q.drawer_id
            WHERE q.palace_id = %(palace)s AND q.proposal_id = p.id AND d.trashed_at IS NOT NULL
        ) AND (%(dream)s::bigint IS NULL OR p.dream_id = %(dream)s::bigint)
        AND (%(about)s::uuid IS NULL OR EXISTS (
            SELECT FROM palace_proposalfact l
            JOIN palace_fact f ON f.palace_id = %(palace)s AND f.id = l.fact_id
            WHERE l.palace_id = %(palace)s AND l.proposal_id = p.id AND f.memory = %(about)s::uuid
        ))
), shown AS MATERIALIZED (
    SELECT w.* FROM waiting w LEFT JOIN (
        SELECT id, made_at, array_position(%(kinds)s::text[], kind::text) AS rank
        FROM palace_proposal WHERE palace_id = %(palace)s AND uuid = %(after)s::uuid
    ) mark ON true
    WHERE (%(kind)s = '' OR w.kind = %(kind)s) AND (mark.id IS NULL OR w.rank > mark.rank
        OR w.rank = mark.rank AND (w.made_at, w.id) < (mark.made_at, mark.id))
    ORDER BY w.rank, w.made_at DESC, w.id DESC LIMIT %(most)s::bigint
)
"""


def waiting_proposals(
    palace: Palace, asked: ProposalFilter, after: str, most: int
) -> tuple[dict[str, int], list[Proposal]]:
    """The number of each kind that passes the filters, and proposals of the kind that is asked
    for, in the order of `KINDS`; within a kind the newest first.

    Args:
        after: The last proposal before these. It may be decided already: after deciding on a whole
            page, one goes to the next.
    """
    given = {
        "palace": palace.pk,
        "kinds": [str(kind) for kind in KINDS],
        "dream": asked.dream.pk if asked.dream else None,
        "about": asked.about.memory if asked.about else None,
        "kind": asked.kind,
        "after": read_uuid(after),
        "most": most,
    }
    counts: dict[str, int] = {}
    found = []
    for counted, *values in fetch_rows(_page(), given, prepared=True):
        counts, rest = counted or {}, iter(values)
        proposal = read_instance(Proposal, rest)
        if proposal is not None:
            proposal._state.fields_cache["dream"] = read_instance(Activity, rest)
            found.append(proposal)
    return counts, found


@cache
def _page() -> str:
    return f"""{_WAITING}
        SELECT counted.counts, {columns(Proposal, "p")}, {columns(Activity, "a")}
        FROM (
            SELECT jsonb_object_agg(kind, number) AS counts
            FROM (SELECT kind, count(*) AS number FROM waiting GROUP BY kind) each
        ) counted
        LEFT JOIN shown ON true
        LEFT JOIN palace_proposal p ON p.palace_id = %(palace)s AND p.id = shown.id
        LEFT JOIN palace_activity a ON a.palace_id = %(palace)s AND a.id = p.dream_id
        ORDER BY shown.rank, shown.made_at DESC, shown.id DESC
    """  # noqa: S608 - put together from constants and the models.


def _dream(palace: Palace, uuid: str) -> Activity | None:
    if not uuid:
        return None
    return get_by_uuid(Activity.objects.filter(palace=palace, kind=Activity.Kind.DREAMT), uuid)


def _about(palace: Palace, memory: str) -> Fact | None:
    if not memory:
        return None
    rows = Fact.objects.within(palace).order_by("-recorded_at", "-pk")
    try:
        found = rows.filter(memory=UUID(memory)).first()
    except ValueError:
        found = None
    if found is None:
        raise Http404
    return found

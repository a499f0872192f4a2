"""The filters of the inbox: from the address to a query, and the order of proposals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Case, IntegerField, Q, Value, When
from django.http import Http404

from palace.models import Activity, Fact, Palace, Proposal, ProposalQuerySet
from palace.views.shared.query_params import find_by_uuid, get_by_uuid, query_string

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
SHELVES = {WAITING: "Waiting", ROOMS: "Rooms", DECIDED: "Decided lately", STALE: "Stale"}


@dataclass(frozen=True, slots=True)
class ProposalFilter:
    """
    Attributes:
        shelf: One of `SHELVES`.
        kind: Only this kind; empty for all.
        dream: Only proposals of this dream.
        about: Only proposals about this memory.
        select: The kind whose boxes are ticked.
    """

    shelf: str = WAITING
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
        shelf, kind, select = (sent.get(name, "") for name in ("show", "kind", "select"))
        if shelf == ROOMS:
            return cls(shelf)  # The others are of proposals.
        return cls(
            shelf if shelf in SHELVES else WAITING,
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
            "show": self.shelf,
            "kind": self.kind,
            "dream": str(self.dream.uuid) if self.dream else "",
            "about": str(self.about.memory) if self.about else "",
        } | more
        return query_string(**asked)

    def shelves(self) -> Iterator[tuple[str, str, bool]]:
        """Label, query string, and whether it is the current one."""
        for name, label in SHELVES.items():
            yield label, self.with_query(show=name), name == self.shelf

    def proposals(self, palace: Palace) -> ProposalQuerySet:
        """The proposals that pass the filters; only decided ones are ordered."""
        rows = Proposal.objects.within(palace)
        if self.shelf == DECIDED:
            rows = rows.decided()
        elif self.shelf == STALE:
            rows = stale(palace)
        else:
            rows = rows.waiting()
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


def by_kind(rows: ProposalQuerySet) -> ProposalQuerySet:
    """In the order of `KINDS`; within a kind the newest first."""
    return rows.annotate(rank=_rank()).order_by("rank", "-made_at", "-pk")


def behind(palace: Palace, rows: ProposalQuerySet, uuid: str) -> ProposalQuerySet:
    """The proposals after one in the order of `by_kind`; all if there is no such proposal.

    The cursor may be decided already: after deciding on a whole page, one goes to the next.
    """
    mark = find_by_uuid(Proposal.objects.within(palace), uuid)
    if mark is None:
        return rows
    rank = KINDS.index(Kind(mark.kind))
    same = Q(rank=rank, made_at=mark.made_at, pk__lt=mark.pk)
    older = Q(rank=rank, made_at__lt=mark.made_at)
    return rows.annotate(rank=_rank()).filter(Q(rank__gt=rank) | older | same)


def _rank() -> Case:
    ranked = [When(kind=kind, then=Value(number)) for number, kind in enumerate(KINDS)]
    return Case(*ranked, default=Value(len(KINDS)), output_field=IntegerField())


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

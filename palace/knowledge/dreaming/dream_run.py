"""A dream: consolidate facts, and search messages for lasting preferences.

All changes are proposals, except those of kinds that the owner lets Loci accept. A killed, repeated
or concurrent dream ends in the same state: each change is proposed once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from celery import shared_task
from django.db import transaction
from django.utils import timezone

from language.english.judging import same
from language.errors import PalaceError
from palace.knowledge.dreaming.decisions import DREAM, accept_all
from palace.knowledge.dreaming.dream_input import (
    MOST_FACTS,
    MOST_FACTS_BY_RULES,
    Directives,
    facts_to_look_at,
    feedback_of,
    log_of,
    read_directives,
    rooms_of_projects,
)
from palace.knowledge.dreaming.model_passes import Limits, ModelPasses, Purse
from palace.knowledge.dreaming.proposals import ADDING, Finding, find_locally, mark_stale, propose
from palace.models import (
    Activity,
    Drawer,
    DreamMark,
    EmbeddingSpace,
    Fact,
    Palace,
    Proposal,
    Room,
    in_palace,
    opens_palace,
)
from palace.models.concurrency import held_if_free, is_held, sweep_task, unless_gone
from palace.storage.indexing.fact_vectors import Vector, embed_texts, fill_missing, nearest
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings, ModelUse, settings_of
from settings_app.time_zone import zone_named

logger = logging.getLogger(__name__)

# Hours of the owner's clock when Loci is hardly used.
NIGHT = range(2, 6)
# One dream per night, with some tolerance for its start.
REST = timedelta(hours=20)
# After this time dream during the day: the machine may be off at night.
LONGEST_REST = timedelta(hours=36)
# Minimum cosine of duplicate preferences or anti-patterns.
SAME_AS_KNOWN = 0.88
CLOSEST = 3
# How often nights are looked for, and how many of them at once.
SWEEP_INTERVAL_S, SWEEP = 60, 200
# Latest proposals of a kind to compare with.
LOOKED_OVER = 200


@dataclass(frozen=True, slots=True)
class Night:
    palace: Palace
    with_model: bool


def palaces_due(now: datetime) -> Iterator[Night]:
    """Palaces whose dream is due, longest wait first."""
    marks = dict(DreamMark.objects.values_list("palace_id", "dreamt_at"))
    with_facts = Fact.objects.active().order_by().values("palace").distinct()
    palaces = list(Palace.objects.filter(pk__in=with_facts))
    palaces.sort(key=lambda palace: (marks.get(palace.pk) or palace.created_at, palace.pk))
    for palace in palaces:
        night = is_due(palace, now)
        if night is not None:
            yield night


def is_due(palace: Palace, now: datetime) -> Night | None:
    """None if it has dreamt recently, dreams are off, or nothing is new."""
    chosen = settings_of(palace.owner_id)
    mark = DreamMark.objects.filter(palace=palace).first() or DreamMark(palace=palace)
    if chosen.dreams == MemorySettings.Dreams.OFF or not _has_rested(palace, mark, chosen, now):
        return None
    with_model = chosen.dreams == MemorySettings.Dreams.MODEL
    return Night(palace, with_model) if _has_news(palace, mark, with_model=with_model) else None


def _has_rested(palace: Palace, mark: DreamMark, chosen: MemorySettings, now: datetime) -> bool:
    rested = now - (mark.dreamt_at or palace.created_at)
    at_night = now.astimezone(zone_named(chosen.time_zone)).hour in NIGHT
    return rested >= LONGEST_REST or (rested >= REST and at_night)


def _has_news(palace: Palace, mark: DreamMark, *, with_model: bool) -> bool:
    active = Fact.objects.within(palace).active()
    if mark.dreamt_at is None or active.filter(recorded_at__gt=mark.dreamt_at).exists():
        return active.exists()
    said = Drawer.objects.within(palace).kept().filter(role="user", pk__gt=mark.drawer)
    return with_model and said.exists()


@dataclass(frozen=True, slots=True)
class Dreamt:
    """The result of a dream.

    Attributes:
        activity: Its record; None where nothing was done.
        proposed: How many of each kind.
        rooms: For how many more conversations a project is suggested.
        applied: How many of them, and of those that waited, were applied by themselves.
        notes: What was degraded or left out, in sentences.
        already: Another dream of this palace was under way, so that nothing was done.
    """

    activity: Activity | None = None
    proposed: Counter[str] = field(default_factory=Counter)
    rooms: int = 0
    applied: int = 0
    notes: tuple[str, ...] = ()
    already: bool = False


@opens_palace
def dream(palace: Palace, *, with_model: bool = True) -> Dreamt:
    """Dream once. Call it outside of a transaction; calls to a model take minutes.

    Args:
        with_model: Whether the owner's model may be asked, where there is one.

    Raises:
        BadDirective: a file with instructions cannot be used; nothing was done.
    """
    directives = read_directives()
    with held_if_free(_lock_of(palace)) as ours:
        if not ours:
            return Dreamt(already=True)
        return _Dream(palace, directives, with_model=with_model).run()


def is_dreaming(palace: Palace) -> bool:
    return is_held(_lock_of(palace))


def _lock_of(palace: Palace) -> str:
    return f"dream over palace {palace.pk}"


class _Dream:
    def __init__(self, palace: Palace, directives: Directives, *, with_model: bool) -> None:
        self._palace = palace
        self._chosen = settings_of(palace.owner_id)
        self._activity = Activity(palace=palace, kind=Activity.Kind.DREAMT)
        self._proposed: Counter[str] = Counter()
        self._looked: dict[str, int] = {}
        self._notes: list[str] = []
        self._rooms = self._applied = 0
        self._passes = self._with_model(directives) if with_model else None

    def _with_model(self, directives: Directives) -> ModelPasses | None:
        named = self._chosen.chat_model(ModelUse.DREAMS)
        if named.note:
            self._notes.append(named.note)
        if named.endpoint is None:
            return None
        purse = Purse(named.endpoint, Limits.of(self._chosen))
        return ModelPasses(self._palace, named.endpoint, purse, directives)

    def run(self) -> Dreamt:
        began = timezone.now()
        # Store the start first, so that a killed dream does not start again each hour.
        DreamMark.objects.update_or_create(palace=self._palace, defaults={"dreamt_at": began})
        self._write(self._consolidated(began))
        if self._passes is not None and self._chosen.dream_preferences:
            self._infer(self._passes)
        self._apply_trusted()
        # What comes next does not undo what was done.
        self._save()
        self._rooms = suggest_projects(self._palace, rooms_of_projects(self._palace))
        self._save()
        return Dreamt(self._activity, self._proposed, self._rooms, self._applied, self._all_notes())

    def _consolidated(self, now: datetime) -> list[Finding]:
        """The model's findings, then those of the rules on other facts."""
        palace, space = self._palace, active_space()
        facts = facts_to_look_at(palace, MOST_FACTS_BY_RULES)
        fill_missing(palace, space, facts)
        self._looked["facts"] = len(facts)
        found: list[Finding] = []
        if self._passes is not None and facts:
            feedback = feedback_of(palace, now)
            self._looked["feedback"] = len(feedback)
            found = self._passes.consolidate(facts[:MOST_FACTS], feedback) or []
        spoken_of = {fact.pk for one in found for fact in (*one.sources, *one.beside)}
        by_rules = [
            one
            for one in find_locally(palace, space, facts)
            if spoken_of.isdisjoint(fact.pk for fact in one.sources)
        ]
        return only_new(palace, space, [*found, *by_rules])

    def _infer(self, passes: ModelPasses) -> None:
        log = log_of(self._palace)
        self._looked["messages"] = len(log.messages)
        if log.passed_over:
            self._notes.append(f"Older messages that were passed over: {log.passed_over:,}.")
        if not log.messages:
            return
        found, asked = passes.infer(log)
        new = only_new(self._palace, active_space(), found)
        with transaction.atomic():
            self._write(new)
            # Advance even if the pass failed, or it would be repeated each night.
            if asked:
                marks = DreamMark.objects.filter(palace=self._palace, drawer__lt=log.end)
                marks.update(drawer=log.end)

    @transaction.atomic
    def _write(self, findings: Sequence[Finding]) -> None:
        """Store the findings of a pass and the dream's record in one transaction."""
        self._palace.lock()
        mark_stale(self._palace)
        self._save()
        self._proposed += propose(self._palace, findings, self._activity)
        self._save()

    def _apply_trusted(self) -> None:
        """Accept waiting proposals of trusted kinds, also those of earlier, killed dreams.

        Proposals about security, credentials or money always wait for the user.
        """
        waiting = Proposal.objects.within(self._palace).waiting()
        trusted = waiting.filter(kind__in=self._chosen.dream_trusted)
        uuids = [one.uuid for one in trusted if not one.asks_first]
        self._applied = len(accept_all(self._palace, uuids, by=DREAM).done)

    def _save(self) -> None:
        self._activity.summary = self._summary()
        self._activity.detail = self._detail()
        self._activity.save()

    def _summary(self) -> str:
        facts, messages = self._looked.get("facts", 0), self._looked.get("messages", 0)
        over = _counted(facts, "fact")
        over += f" and {_counted(messages, 'message')}" if messages else ""
        made = sum(self._proposed.values())
        came = f"{_counted(made, 'change')} proposed" if made else "nothing to change"
        applied = f", {self._applied:,} applied" if self._applied else ""
        rooms = f"; a project suggested for {_counted(self._rooms, 'conversation')}"
        return f"Dreamt over {over}: {came}{applied}{rooms if self._rooms else ''}."

    def _detail(self) -> dict[str, Any]:
        spent = self._passes.purse if self._passes else None
        usd = spent.spent.usd if spent else None
        return {
            "looked_at": self._looked,
            "proposed": dict(self._proposed),
            "rooms": self._rooms,
            "applied": self._applied,
            "model": str(self._passes.endpoint) if self._passes else "",
            "calls": spent.calls if spent else 0,
            "tokens_in": spent.spent.tokens_in if spent else 0,
            "tokens_out": spent.spent.tokens_out if spent else 0,
            "cost_usd": str(usd) if usd is not None else None,
            "notes": list(self._all_notes()),
        }

    def _all_notes(self) -> tuple[str, ...]:
        return (*self._notes, *(self._passes.notes if self._passes else ()))


@transaction.atomic
def suggest_projects(palace: Palace, found: Mapping[int, int]) -> int:
    """Suggest these projects' wings, by room, and no others; returns how many rooms have a new one.

    Not for a room that a person has placed meanwhile.
    """
    palace.lock()
    rooms = Room.objects.within(palace).filter(is_settled=False)
    rooms.exclude(project=None).exclude(pk__in=found).update(project=None)
    new = 0
    for wing in sorted(set(found.values())):
        own = rooms.filter(pk__in=[room for room, of in found.items() if of == wing])
        new += own.exclude(wing=wing).exclude(project=wing).update(project=wing)
    return new


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


@dataclass(frozen=True, slots=True)
class _Said:
    """A text and its kind, with its vector if there is one."""

    kind: str
    text: str
    vector: Vector | None

    def is_like(self, other: _Said) -> bool:
        return self.kind == other.kind and (
            same(self.text, other.text) or _cosine(self.vector, other.vector) >= SAME_AS_KNOWN
        )


def only_new(palace: Palace, space: EmbeddingSpace, findings: Sequence[Finding]) -> list[Finding]:
    """Drop findings that add what a fact or an earlier proposal says already."""
    adding = [one for one in findings if one.kind in ADDING and one.after is not None]
    if not adding:
        return list(findings)
    added = [(one.kind.value, one.after.text) for one in adding if one.after]
    earlier = _proposed(palace, {kind for kind, _ in added})
    vectors = embed_texts(palace, space, [text for _, text in (*added, *earlier)])
    said = [
        _Said(kind, text, vector)
        for (kind, text), vector in zip((*added, *earlier), vectors, strict=True)
    ]
    known, before = set(), said[len(adding) :]
    for finding, one in zip(adding, said, strict=False):
        if any(one.is_like(other) for other in before) or _is_known(palace, space, finding, one):
            known.add(id(finding))
        else:
            # Also drop duplicates within one answer.
            before.append(one)
    return [one for one in findings if id(one) not in known]


def _proposed(palace: Palace, kinds: Collection[str]) -> list[tuple[str, str]]:
    before = Proposal.objects.within(palace).filter(kind__in=kinds)
    before = before.exclude(status=Proposal.Status.STALE).order_by("-made_at", "-pk")
    rows = before.values_list("kind", "payload__after__text")[:LOOKED_OVER]
    return [(kind, text) for kind, text in rows if text]


def _is_known(palace: Palace, space: EmbeddingSpace, finding: Finding, one: _Said) -> bool:
    if one.vector is None or finding.after is None:
        return False
    root = finding.after.category.split("/")[0]
    active = Fact.objects.within(palace).active().filter(agent="", run="")
    alike = active.filter(type=Fact.Type.PREFERENCE) | active.filter(category__startswith=root)
    return any(
        cosine >= SAME_AS_KNOWN or same(fact.text, one.text)
        for fact, cosine in nearest(palace, space, one.vector, alike, limit=CLOSEST)
    )


def _cosine(one: Vector | None, other: Vector | None) -> float:
    return 0.0 if one is None or other is None else float(one @ other)


@shared_task(name="palace.tasks.dream_of", reject_on_worker_lost=False)
def dream_of(palace_id: int, with_model: bool = True) -> None:  # noqa: FBT001, FBT002
    """Dream over a palace on request."""
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces), unless_gone(palaces):
        try:
            dream(palaces.get(), with_model=with_model)
        except PalaceError as error:
            logger.error("A dream could not begin: %s", error)  # noqa: TRY400


@shared_task(name="palace.tasks.dream_at_night", reject_on_worker_lost=False)
def dream_at_night(palace_id: int) -> None:
    """Dream over a palace at night, unless it has dreamt since this was queued."""
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces):
        palace = palaces.first()
        night = is_due(palace, timezone.now()) if palace is not None else None
    if night is not None:
        dream_of(palace_id, with_model=night.with_model)


@sweep_task("palace.tasks.dream_where_it_is_night", "dreams", expires=SWEEP_INTERVAL_S)
def dream_where_it_is_night() -> None:
    """Queue the nightly dreams of palaces with new content."""
    for night in islice(palaces_due(timezone.now()), SWEEP):
        dream_at_night.delay(night.palace.pk)

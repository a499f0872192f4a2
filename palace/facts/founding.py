"""What becomes of facts when the words they rest on go, or come back."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef
from django.utils import timezone

from palace.errors import FactConflict
from palace.facts.applying import note, retire
from palace.facts.editing import hold_again
from palace.facts.forgetting import delete_rows, forget_proposals
from palace.facts.scope import Scope
from palace.models import Drawer, Evidence, Fact, FactEvent, Palace
from palace.models.facts import FactQuerySet
from palace.models.hierarchy import DrawerQuerySet

BY_TRASH = Scope("trash")
GONE = "the words it rested on were moved to the trash"
BACK = "the words it rests on are back"


def resting_on(palace: Palace, drawers: DrawerQuerySet) -> FactQuerySet:
    """All facts that rest on any of the drawers, held or not."""
    within = drawers.within(palace)
    words = Evidence.objects.filter(
        palace=palace, fact=OuterRef("pk"), drawer__in=within.values("pk")
    )
    return Fact.objects.within(palace).filter(Exists(words))


def resting_only_on(palace: Palace, drawers: DrawerQuerySet) -> FactQuerySet:
    """Held facts that rest on these drawers, and on none that is kept beside them."""
    others = Drawer.objects.within(palace).kept().exclude(pk__in=drawers.values("pk"))
    elsewhere = Evidence.objects.filter(
        palace=palace, fact=OuterRef("pk"), drawer__in=others.values("pk")
    )
    return resting_on(palace, drawers).active().exclude(Exists(elsewhere))


def unfound(palace: Palace, facts: FactQuerySet) -> list[Fact]:
    """Drop facts whose words go to the trash; returns them. Call it holding the palace."""
    dropped = list(facts.order_by("pk"))
    now = timezone.now()
    for fact in dropped:
        retire(fact, Fact.Fate.UNFOUNDED, now)
        note(
            palace, BY_TRASH, FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=GONE, at=now
        )
    return dropped


def found_again(palace: Palace, drawers: Collection[int]) -> list[Fact]:
    """Hold again what was dropped with these drawers, by their keys, which are back.

    What has been replaced meanwhile stays as it is. Call it holding the palace.
    """
    words = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"), drawer__in=drawers)
    dropped = Fact.objects.within(palace).filter(Exists(words), fate=Fact.Fate.UNFOUNDED)
    newest = dropped.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    held: list[Fact] = []
    for fact in newest:
        try:
            held.append(hold_again(palace, fact, BY_TRASH, why=BACK))
        except FactConflict:
            continue
    return held


def forget_resting_on(palace: Palace, drawers: Collection[int]) -> list[int]:
    """Delete every version that rests on these drawers alone, and its words in histories.

    Call it in the transaction that deletes the drawers, before it does.

    Returns:
        Keys of the entities that the facts were about.
    """
    forget_proposals(palace, drawers=drawers)
    words = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"))
    doomed = Fact.objects.within(palace).filter(
        Exists(words.filter(drawer__in=drawers)), ~Exists(words.exclude(drawer__in=drawers))
    )
    rows = list(doomed.order_by("pk"))
    delete_rows(palace, rows)
    about = {fact.subject_id for fact in rows} | {fact.object_entity_id for fact in rows}
    return [key for key in about if key is not None]

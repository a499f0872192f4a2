"""Retention: how long a wing keeps its messages, and which ones it never keeps.

The others go to the trash, from which they can be restored for some weeks.
"""

from __future__ import annotations

import hashlib
import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from celery import shared_task
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from language.errors import PalaceError
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.trash import (
    Batch,
    Contents,
    Restored,
    batch_of,
    contents_of,
    drawers_in,
    restore,
    trash_drawers,
)
from palace.models import DrawerQuerySet, Entity, Mention, Palace, Wing, in_palace
from palace.models.concurrency import leave_queue, sweep_task, unless_gone
from settings_app.task_queue import BULK

MOST_MONTHS = 1200
MOST_NAMES = 50
EARLIEST_YEAR = 1900
# A sweep that has waited longer is dropped, so that at most one is queued while no worker runs.
SWEEP_INTERVAL_S = 60


class BadKeeping(PalaceError):
    """An invalid rule; the message says what to do.

    Attributes:
        field: The field of the form.
    """

    code = "bad_keeping"

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Keeping:
    """
    Attributes:
        months: Older messages are not kept; None: all are.
        never: Names of people and topics; messages about them are not kept.
    """

    months: int | None = None
    never: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identifies the rules, so that only those that were previewed are set."""
        return hashlib.sha256(repr((self.months, self.never)).encode()).hexdigest()[:16]

    @classmethod
    def of(cls, wing: Wing) -> Keeping:
        return cls(wing.kept_months, tuple(wing.never))

    @classmethod
    def read(cls, months: str, never: str) -> Keeping:
        """Read the rules from a form; `never` has a name per line.

        Raises:
            BadKeeping: the months are no number, or there are too many names.
        """
        months = months.strip()
        is_number = months.isascii() and months.isdigit() and len(months) <= 4
        if months and not (is_number and 0 < int(months) <= MOST_MONTHS):
            raise BadKeeping("months", f"Write a number of months from 1 to {MOST_MONTHS:,}.")
        lines = (" ".join(storable_label(line).split()) for line in never.splitlines())
        names = tuple(dict.fromkeys(line for line in lines if line))
        if len(names) > MOST_NAMES:
            raise BadKeeping("never", f"Write at most {MOST_NAMES} names.")
        if any(len(line.strip()) > LABEL_LENGTH for line in never.splitlines()):
            raise BadKeeping("never", f"Write at most {LABEL_LENGTH} characters a name.")
        return cls(int(months) if months else None, names)


def preview_keeping(wing: Wing, keeping: Keeping) -> Contents:
    """The drawers that would go to the trash now."""
    return contents_of(wing.palace, _not_kept(wing, keeping))


@transaction.atomic
def set_keeping(wing: Wing, keeping: Keeping) -> Batch:
    """Set the rules of a wing, and apply them."""
    wing.palace.lock()
    wing.kept_months, wing.never = keeping.months, list(keeping.never)
    wing.save(update_fields=["kept_months", "never"])
    return _apply(wing)


@transaction.atomic
def undo_keeping(wing: Wing, before: Keeping, at: datetime) -> Restored:
    """Set the rules that a wing had before, and restore what it lost at that moment."""
    wing.palace.lock()
    wing.kept_months, wing.never = before.months, list(before.never)
    wing.save(update_fields=["kept_months", "never"])
    return restore(wing.palace, batch_of(wing.palace, at))


def apply_keeping(palace: Palace) -> int:
    """Apply the rules of all wings; returns the number of messages that went to the trash."""
    return sum(_apply(wing).drawers for wing in with_rules().filter(palace=palace))


def with_rules() -> QuerySet[Wing]:
    """Wings that do not keep everything."""
    return Wing.objects.exclude(kept_months=None, never=[]).order_by("pk")


@shared_task(name="palace.tasks.keep_by_rules", reject_on_worker_lost=False)
def keep_by_rules(palace_id: int) -> None:
    """Move to the trash what the wings of a palace do not keep."""
    leave_queue(keep_by_rules, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces), unless_gone(palaces):
        apply_keeping(palaces.get())


@sweep_task("palace.tasks.keep_by_rules_everywhere", "keeping", expires=SWEEP_INTERVAL_S)
def keep_by_rules_everywhere() -> None:
    """Queue the palaces with such rules: messages grow old."""
    for palace_id in with_rules().order_by().values_list("palace_id", flat=True).distinct():
        keep_by_rules.apply_async((palace_id,), queue=BULK)


def _apply(wing: Wing) -> Batch:
    return trash_drawers(wing.palace, _not_kept(wing, Keeping.of(wing)), wing, by_rule=True)


def _not_kept(wing: Wing, keeping: Keeping) -> DrawerQuerySet:
    wrong = Q(pk__in=[])
    if keeping.months is not None:
        before = months_before(timezone.now(), keeping.months)
        # In the unsorted wing, what was imported today waits to be filed, however old it is.
        has_waited = Q() if wing.number else Q(filed_at__lt=before)
        wrong |= Q(said_at__lt=before) & has_waited
    if keeping.never:
        wrong |= _about(wing, keeping.never)
    # Keys, as the trash counts and updates them in several statements.
    found = drawers_in(wing).kept().filter(wrong).order_by()
    return drawers_in(wing).filter(pk__in=list(found.values_list("pk", flat=True)))


def _about(wing: Wing, names: Sequence[str]) -> Q:
    """Messages that mention an entity by any of its names, or are of that topic."""
    slugs = {slug_of(name) for name in names}
    known = Entity.objects.filter(palace=wing.palace_id)
    aliased = known.exclude(aliases=[]).values_list("pk", "aliases")
    keys = [key for key, aliases in aliased if slugs & set(map(slug_of, aliases))]
    entities = known.filter(Q(slug__in=slugs) | Q(pk__in=keys))
    mentioned = Mention.objects.filter(
        palace=wing.palace_id,
        drawer=OuterRef("pk"),
        entity__in=list(entities.values_list("pk", flat=True)),
    )
    words = "|".join(re.escape(name) for name in names)
    return (
        Q(Exists(mentioned)) | Q(closet__slug__in=slugs) | Q(text__iregex=rf"(^|\W)({words})(\W|$)")
    )


def months_before(moment: datetime, months: int) -> datetime:
    """The same day and hour some months earlier, or the last day of that month."""
    month = moment.year * 12 + moment.month - 1 - months
    year, month = max(month // 12, EARLIEST_YEAR), month % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))

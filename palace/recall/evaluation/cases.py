"""Cases: questions with the drawers that the owner expects, for evaluating recall."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from palace.errors import PalaceError
from palace.models import Drawer, ExpectedDrawer, Palace, RecallCase, RecollectionTrace
from settings_app.models import settings_of
from settings_app.time_zone import zone_named


class NotACase(PalaceError):
    """A case could not be saved; the message says why, and what to do."""

    code = "not_a_case"


QUESTION_GONE = (
    "The question was deleted for good with the drawer it came from; there is nothing left to try."
)
DRAWER_GONE = "This drawer was deleted for good."


def owners_time(palace: Palace, moment: datetime) -> datetime:
    """`moment` in the owner's time zone, which "yesterday" refers to."""
    return moment.astimezone(zone_named(settings_of(palace.owner_id).time_zone))


def case_of(trace: RecollectionTrace) -> RecallCase | None:
    """The saved case of the trace's question, if any."""
    day = owners_time(trace.palace, trace.now).date()
    return RecallCase.objects.within(trace.palace).filter(query=trace.query, day=day).first()


@transaction.atomic
def expect(trace: RecollectionTrace, drawer: Drawer) -> RecallCase:
    """Save that `drawer` is expected. Idempotent: a question has one case per day.

    Raises:
        NotACase: the question or the drawer was deleted, or the drawer is in the trash.
    """
    palace = trace.palace
    palace.lock()  # Blocks purges.
    trace.refresh_from_db()
    if not trace.query:
        raise NotACase(QUESTION_GONE)
    held = Drawer.objects.within(palace).with_place().filter(pk=drawer.pk).first()
    if held is None:
        raise NotACase(DRAWER_GONE)
    if held.trashed_at:
        raise NotACase(
            f"{held.pointer} is in the trash, where nothing can find it; restore it first."
        )
    case, _ = RecallCase.objects.get_or_create(
        palace=palace,
        query=trace.query,
        day=owners_time(palace, trace.now).date(),
        defaults={"now": trace.now},
    )
    _, is_new = ExpectedDrawer.objects.get_or_create(palace=palace, case=case, drawer=held)
    if is_new and case.tried_at:  # The last trial did not expect this drawer.
        case.tried_at = None
        case.save(update_fields=["tried_at"])
    return case


@transaction.atomic
def take_back(case: RecallCase, drawer: Drawer) -> bool:
    """Remove an expected drawer; True if the case was deleted with its last one."""
    case.palace.lock()
    expected = ExpectedDrawer.objects.filter(palace=case.palace_id, case=case)
    expected.filter(drawer=drawer).delete()
    if expected.exists():
        return False
    RecallCase.objects.within(case.palace).filter(pk=case.pk).delete()
    return True

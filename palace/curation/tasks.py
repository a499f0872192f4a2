"""Background tasks of curation: the trash, rules of retention, closed accounts.

Each is idempotent and safe to run concurrently.
"""

from __future__ import annotations

from celery import shared_task

from palace.curation import deletion, trash, wings
from palace.models import Palace, in_palace
from palace.models.attempts import leave_queue, sweep_task, unless_gone
from palace.models.locks import held_if_free
from settings_app.task_queue import BULK

# A sweep expires after its interval, so that at most one is queued while no worker runs.
SWEEP_INTERVAL_S = 60
PURGE_S = 45


@shared_task(name="palace.tasks.purge_trash", reject_on_worker_lost=False)
def purge_trash() -> None:
    """Purge expired trash for a limited time, then queue the rest."""
    with held_if_free("purge the trash") as ours:
        done = not ours or deletion.purge_expired(seconds=PURGE_S)
    if not done:
        purge_trash.delay()


@shared_task(name="palace.tasks.keep_by_rules", reject_on_worker_lost=False)
def keep_by_rules(palace_id: int) -> None:
    """Move to the trash what the wings of a palace do not keep."""
    leave_queue(keep_by_rules, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces), unless_gone(palaces):
        wings.apply_keeping(palaces.get())


@sweep_task("palace.tasks.keep_by_rules_everywhere", "keeping", expires=SWEEP_INTERVAL_S)
def keep_by_rules_everywhere() -> None:
    """Queue the palaces with such rules: messages grow old."""
    for palace_id in wings.with_rules().order_by().values_list("palace_id", flat=True).distinct():
        keep_by_rules.apply_async((palace_id,), queue=BULK)


@shared_task(name="palace.tasks.empty_trash", reject_on_worker_lost=False)
def empty_trash(palace_id: int, through: int) -> None:
    """Purge the trash up to a batch for a limited time, then queue the rest.

    Args:
        through: Key of the last batch to purge.
    """
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces):
        palace = palaces.first()
        drawers = trash.up_to(through)
        if palace is not None and not deletion.Purge(palace).run(drawers, seconds=PURGE_S):
            empty_trash.delay(palace_id, through)


@shared_task(
    name="palace.tasks.delete_closed_accounts",
    expires=SWEEP_INTERVAL_S,
    reject_on_worker_lost=False,
)
def delete_closed_accounts() -> None:
    """Delete the data of closed accounts, including interrupted deletions."""
    deletion.delete_closed_accounts()

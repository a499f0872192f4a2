"""Background tasks of the APIs."""

from __future__ import annotations

from celery import shared_task

from api.oauth import grants
from isolation import row_access
from palace.models import forget_old_writes


@shared_task
def forget_unused() -> None:
    """Safe to run twice: what is left can still open something, or is still listed."""
    with row_access.sweep("connected apps"):
        grants.forget_unused()


@shared_task(name="palace.tasks.forget_answered_writes")
def forget_answered_writes() -> None:
    """Delete expired responses of idempotent writes."""
    with row_access.sweep("answers"):
        forget_old_writes()

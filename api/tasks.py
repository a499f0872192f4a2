"""Background tasks of connected apps."""

from __future__ import annotations

from celery import shared_task

from api.oauth import grants
from isolation import row_access


@shared_task
def forget_unused() -> None:
    """Safe to run twice: what is left can still open something, or is still listed."""
    with row_access.sweep("connected apps"):
        grants.forget_unused()

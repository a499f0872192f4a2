"""What is done about accounts in the background."""

from __future__ import annotations

from celery import shared_task

from isolation import row_access
from llm import usage
from settings_app import audit
from settings_app.sessions import SessionStore


@shared_task
def forget_ended_sessions() -> None:
    """Safe to run twice: one whose time is up is worth nothing any more."""
    with row_access.sweep("sessions"):
        SessionStore.clear_expired()


@shared_task
def forget_old_audit_lines() -> None:
    """Safe to run twice: what is left is not old."""
    with row_access.sweep("audit"):
        audit.forget_old()


@shared_task
def forget_old_sent() -> None:
    """Safe to run twice: what is left is not old."""
    with row_access.sweep("sent"):
        usage.forget_sent()

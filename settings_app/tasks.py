"""Background tasks of accounts."""

from __future__ import annotations

from celery import shared_task

from isolation import row_access
from llm import usage
from settings_app import audit
from settings_app.sessions import SessionStore


@shared_task
def forget_ended_sessions() -> None:
    """Delete expired sessions; safe to run twice."""
    with row_access.sweep("sessions"):
        SessionStore.clear_expired()


@shared_task
def forget_old_audit_lines() -> None:
    """Delete old lines of the audit log; safe to run twice."""
    with row_access.sweep("audit"):
        audit.forget_old()


@shared_task
def forget_old_sent() -> None:
    """Delete old records of what was sent to models; safe to run twice."""
    with row_access.sweep("sent"):
        usage.forget_sent()

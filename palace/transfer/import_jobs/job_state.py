"""A job's state: start, pause or discard it, record its progress, count its messages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from palace.models import ImportJob
from palace.models.concurrency import is_held
from palace.transfer.spools import spool_path
from settings_app import task_queue
from settings_app.task_queue import BULK


class Overtaken(Exception):
    """The job was paused, discarded or, despite the lock, advanced by another process."""


def start(job: ImportJob) -> bool:
    """Start a waiting job, from its beginning or where it was paused.

    From now on the periodic task resumes it if no process runs it. Returns False, with nothing
    changed, for a job that runs already or has ended.
    """
    waiting = ImportJob.objects.filter(
        palace=job.palace_id, pk=job.pk, status=ImportJob.Status.READY
    )
    started = waiting.update(
        status=ImportJob.Status.RUNNING, progress_at=timezone.now(), measured_from=None
    )
    job.refresh_from_db()
    return started == 1


def pause(job: ImportJob) -> bool:
    """Pause a running job at its next conversation.

    Returns False, with nothing changed, for a job that does not run.
    """
    running = ImportJob.objects.filter(
        palace=job.palace_id, pk=job.pk, status=ImportJob.Status.RUNNING
    )
    paused = running.update(status=ImportJob.Status.READY)
    job.refresh_from_db()
    return paused == 1


def discard(job: ImportJob) -> bool:
    """Delete a job; what it has filed stays.

    Returns False, with nothing changed, for a job that runs or has a receipt.
    """
    idle = (ImportJob.Status.READY, ImportJob.Status.FAILED)
    deleted, _ = ImportJob.objects.filter(palace=job.palace_id, pk=job.pk, status__in=idle).delete()
    if deleted:
        spool_path(job).unlink(missing_ok=True)
    return deleted == 1


def is_worked_on(job: ImportJob) -> bool:
    """Whether a process is running it at this moment."""
    return is_held(lock_name(job))


def standing_still() -> QuerySet[ImportJob, int]:
    """Keys of running jobs without progress, whose next slice has begun or is lost."""
    running = ImportJob.objects.filter(status=ImportJob.Status.RUNNING)
    still = running.filter(task_queue.is_left("progress_at", before=task_queue.left_before(BULK)))
    return still.order_by("pk").values_list("pk", flat=True)


def receipt(job: ImportJob) -> dict[str, Any]:
    """Messages in = stored + present + skipped + waiting; nothing waits once the job is done."""
    skipped = sum(job.messages_skipped.values())
    stored, present = job.messages_stored, job.messages_present
    return {
        "file": job.file_name,
        "format": job.format,
        "status": job.status,
        "conversations": job.conversations_total,
        "conversations_done": job.conversations_done,
        "in": job.messages_total,
        "stored": stored,
        "present": present,
        "skipped": skipped,
        "skipped_why": job.messages_skipped,
        "waiting": job.messages_total - stored - present - skipped,
        "left_out": job.preview.get("left_out", {}),
        "error": job.error,
    }


def save(job: ImportJob, **values: Any) -> None:
    """
    Raises:
        ImportJob.DoesNotExist: It was discarded meanwhile.
    """
    if not ImportJob.objects.filter(palace=job.palace_id, pk=job.pk).update(**values):
        raise ImportJob.DoesNotExist
    for name, value in values.items():
        setattr(job, name, value)


def move_on(job: ImportJob, **progress: Any) -> None:
    """Record what was filed, as the last step of the transaction that files it.

    Raises:
        Overtaken: The job was changed; roll back what was filed.
    """
    progress["progress_at"] = timezone.now()
    here = ImportJob.objects.filter(
        palace=job.palace_id,
        pk=job.pk,
        spool_offset=job.spool_offset,
        status=ImportJob.Status.RUNNING,
    )
    if not here.update(**progress):
        raise Overtaken
    for name, value in progress.items():
        setattr(job, name, value)


def lock_name(job: ImportJob) -> str:
    return f"import {job.pk}"

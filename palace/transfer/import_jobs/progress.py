"""Record a job's progress."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from palace.models import ImportJob


class Overtaken(Exception):
    """The job was paused, discarded or, despite the lock, advanced by another process."""


def save(job: ImportJob, **values: Any) -> None:
    """
    Raises:
        ImportJob.DoesNotExist: It was discarded meanwhile.
    """
    if not ImportJob.objects.filter(pk=job.pk).update(**values):
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
        pk=job.pk, spool_offset=job.spool_offset, status=ImportJob.Status.RUNNING
    )
    if not here.update(**progress):
        raise Overtaken
    for name, value in progress.items():
        setattr(job, name, value)

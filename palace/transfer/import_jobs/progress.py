"""What is written down of a job on its way."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from palace.models import ImportJob


class Overtaken(Exception):
    """The job was paused or discarded; or, which the lock should prevent, somebody moved it on."""


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
        Overtaken: The job is not as we know it; what was filed is not to stay.
    """
    progress["progress_at"] = timezone.now()
    here = ImportJob.objects.filter(
        pk=job.pk, spool_offset=job.spool_offset, status=ImportJob.Status.RUNNING
    )
    if not here.update(**progress):
        raise Overtaken
    for name, value in progress.items():
        setattr(job, name, value)

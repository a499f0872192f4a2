"""Where the prepared conversations of a job lie: private, and gone when the job has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from isolation import reach
from palace.models import ImportJob, Palace

# A spool without a job can only come from a process that was killed; by then it is surely gone.
ORPHAN_AFTER = timedelta(days=1)

# A preview is for deciding soon; its copy of somebody's conversations is not to lie about.
PREVIEW_KEPT = timedelta(days=7)


def spool_folder() -> Path:
    return Path(settings.LOCI_HOME) / "imports"


def spool_path(job: ImportJob) -> Path:
    return spool_folder() / job.spool


def private_folder() -> Path:
    """The spools' folder, made if it was not there yet."""
    folder = spool_folder()
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return folder


def new_spool() -> Path:
    """An empty file that only we may read: it will hold somebody's conversations."""
    remove_orphans()
    return _new_file(f"{uuid4()}.jsonl")


@contextmanager
def new_list() -> Iterator[Path]:
    """An empty file that only we may read, for as long as the block runs.

    If that is killed, it is swept like an upload.
    """
    path = _new_file(f"{uuid4()}.upload.list")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _new_file(name: str) -> Path:
    path = private_folder() / name
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


@reach.sweep("spools")
def remove_orphans() -> None:
    """Delete copies that no job needs: of processes that were killed, of people who have left.

    Previews that nobody has started for a week go too, with their copies, and so do uploads that
    a killed process was receiving: Django calls them `….upload` and the name's ending.
    """
    never_started = ImportJob.objects.filter(status=ImportJob.Status.READY, spool_offset=0)
    never_started.filter(created_at__lt=timezone.now() - PREVIEW_KEPT).delete()
    oldest = (timezone.now() - ORPHAN_AFTER).timestamp()
    old = {path.name: path for path in spool_folder().glob("*.jsonl") if _written(path) < oldest}
    needed = ImportJob.objects.filter(spool__in=old, status__in=ImportJob.UNFINISHED)
    for name in set(old) - set(needed.values_list("spool", flat=True)):
        old[name].unlink(missing_ok=True)
    for upload in spool_folder().glob("*.upload*"):
        if _written(upload) < oldest:
            upload.unlink(missing_ok=True)


def forget_traces(palace: Palace) -> None:
    """The copies of files that were to be imported there go with the palace, once it is gone."""
    spools = ImportJob.objects.filter(palace=palace).exclude(spool="").order_by()
    paths = [spool_folder() / name for name in spools.values_list("spool", flat=True)]
    transaction.on_commit(partial(_remove, paths))


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """Seconds since 1970; now for a file that somebody else has just removed."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()

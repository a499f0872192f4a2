"""Files of imports: the largest upload, and spools of prepared conversations.

Spools are private and deleted when the job ends.
"""

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

from isolation import row_access
from palace.models import ImportJob, Palace

# The rest of an upload's request, in bytes: names, tokens, boundaries.
BESIDES_THE_FILE = 64 << 10
# After this age, a spool without a job is from a killed process.
ORPHAN_AFTER = timedelta(days=1)
# Previews expire, so that copies of conversations do not accumulate.
PREVIEW_KEPT = timedelta(days=7)


def spool_folder() -> Path:
    return Path(settings.LOCI_HOME) / "imports"


def spool_path(job: ImportJob) -> Path:
    return spool_folder() / job.spool


def private_folder() -> Path:
    """The spools' folder, created if missing."""
    folder = spool_folder()
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return folder


def new_spool() -> Path:
    """Create an empty file, readable only by us."""
    remove_orphans()
    return _new_file(f"{uuid4()}.jsonl")


@contextmanager
def new_list() -> Iterator[Path]:
    """A temporary file, readable only by us, deleted after the block.

    If the process is killed, the sweep deletes it.
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


@row_access.sweep("spools")
def remove_orphans() -> None:
    """Delete spools without a job: of killed processes and deleted accounts.

    Also deletes previews that were not started within a week, and uploads that
    a killed process was receiving: Django calls them `….upload` and the name's ending.
    """
    never_started = ImportJob.objects.filter(status=ImportJob.Status.READY, spool_offset=0)
    never_started.filter(created_at__lt=timezone.now() - PREVIEW_KEPT).delete()
    for path in old_spools():
        path.unlink(missing_ok=True)
    oldest = _orphaned_before()
    for upload in spool_folder().glob("*.upload*"):
        if _written(upload) < oldest:
            upload.unlink(missing_ok=True)


def old_spools() -> list[Path]:
    """Spools without an unfinished job, older than any preview takes."""
    oldest = _orphaned_before()
    old = {path.name: path for path in spool_folder().glob("*.jsonl") if _written(path) < oldest}
    needed = ImportJob.objects.filter(spool__in=old, status__in=ImportJob.UNFINISHED)
    return [old[name] for name in set(old) - set(needed.values_list("spool", flat=True))]


def _orphaned_before() -> float:
    return (timezone.now() - ORPHAN_AFTER).timestamp()


def forget_traces(palace: Palace) -> None:
    """Delete the palace's spools when the palace is deleted."""
    spools = ImportJob.objects.filter(palace=palace).exclude(spool="").order_by()
    paths = [spool_folder() / name for name in spools.values_list("spool", flat=True)]
    transaction.on_commit(partial(_remove, paths))


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """The file's modification time; now if it was just removed."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def largest_file() -> int:
    """The largest upload, in bytes."""
    return int(settings.MAX_UPLOAD_MB) << 20


def largest_request() -> int:
    """The largest request, in bytes."""
    return largest_file() + BESIDES_THE_FILE

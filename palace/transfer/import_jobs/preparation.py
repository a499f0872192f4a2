"""The preview: read a file once, count its content, and spool it for filing; the sample palace too.

The sample is a year of an invented life, loaded like any import; `make fix` writes it from the talk
of Clara, a person of the corpus. Its dates are fixed, not counted back from today: people in it
name months, seasons and days, and those would be wrong if the messages moved.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from language.errors import BadImport
from palace.models import Drawer, ImportJob, Palace
from palace.transfer import importers
from palace.transfer.import_jobs.progress import count_present
from palace.transfer.import_jobs.whole_palace import WholeSurvey, is_empty
from palace.transfer.importers import files
from palace.transfer.importers.conversation import Conversation, conversation_from_line, label
from palace.transfer.importers.file_reader import Places, prepare
from palace.transfer.importers.files import Format
from palace.transfer.spools import new_list, new_spool, spool_path

# The most files that a web process reads concurrently.
AT_ONCE = 2
_slots = BoundedSemaphore(AT_ONCE)
_COMMAND = [sys.executable, "-S", "-m", "palace.transfer.importers.file_reader"]
# The number of messages looked up at once.
LOOKUP_BATCH = 2000
SAMPLE_TITLE = "Sample palace"
SAMPLE_FILE = Path(__file__).parents[1] / "sample_palace.jsonl"
# Each is answered by the sample; a test asks them all.
SAMPLE_QUESTIONS = (
    "Where does Mira’s brother live now?",
    "What happened to the trip to Norway?",
    "Do I eat fish?",
    "Why was the water at Upton two hours early?",
    "Semolina or flour in the plum dumplings?",
    "What do I think of working from home?",
    "Wie viel Mohn kommt in Omas Mohnkuchen?",
)


def preview(
    palace: Palace,
    path: Path,
    *,
    file_name: str | None = None,
    progress: files.Progress | None = None,
    format_: Format | None = None,
) -> ImportJob:
    """Read the file once, count what is in it, and prepare a job that is ready to run.

    The same file again returns its unfinished job.

    Args:
        file_name: The original file name, if not the path's.
        progress: Called with the bytes of the file read so far.
        format_: The format of the file, if known; default: detect it.

    Raises:
        BadImport: The file is broken or of an unknown format; nothing was changed.
    """
    reader = partial(prepare, progress=progress, format_=format_)
    return _previewed(palace, path, file_name, reader, format_)


def preview_in_subprocess(palace: Palace, path: Path, *, file_name: str | None = None) -> ImportJob:
    """`preview`, reading the file in a subprocess with a time limit."""
    return _previewed(palace, path, file_name, prepare_apart)


def was_imported(palace: Palace, path: Path) -> bool:
    """Whether this very file was imported into the palace, under any name.

    Raises:
        BadImport: it cannot be read.
    """
    done = ImportJob.objects.filter(palace=palace, status=ImportJob.Status.DONE)
    return done.filter(file_sha256=_sha256(path, path.name)).exists()


def _previewed(
    palace: Palace,
    path: Path,
    file_name: str | None,
    reader: Callable[..., str],
    given: Format | None = None,
) -> ImportJob:
    name = label(file_name or path.name)[:255]
    importers.require_file(path, name)
    sha256 = _sha256(path, name)
    if job := _unfinished(palace, sha256, given):
        return job
    may_be_whole = is_empty(palace)
    with ExitStack() as cleanup, new_list() as listed:
        prepared = new_spool()
        cleanup.callback(prepared.unlink, missing_ok=True)
        source = reader(path, name, Places(prepared, listed), may_be_whole=may_be_whole)
        format_ = (
            importers.SAMPLE if source == importers.SAMPLE.source else importers.FORMATS[source]
        )
        is_whole = may_be_whole and format_ is importers.LOCI
        survey = WholeSurvey() if is_whole else Survey(palace)
        survey.read(listed)
        # An export of an empty palace is no mistake: the message says that it is empty.
        if format_ is not importers.LOCI and not survey.conversations:
            raise BadImport(f"{name} holds no conversations.")
        job, is_new = _create_job(palace, name, sha256, format_, prepared.name, survey)
        if is_new:
            cleanup.pop_all()
    return job


@dataclass(slots=True)
class Survey:
    """Collects a preview's figures, conversation by conversation."""

    palace: Palace
    conversations: int = 0
    empty: int = 0
    branches: int = 0
    messages: int = 0
    kept: int = 0
    present: int = 0
    first: datetime | None = None
    last: datetime | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    _batch: list[Conversation] = field(default_factory=list)
    _batch_turns: int = 0

    def read(self, listed: Path) -> None:
        """Count the listed items, which have no texts."""
        with listed.open("rb") as lines:
            for line in lines:
                self.add(conversation_from_line(line))
        self.close()

    def add(self, conversation: Conversation) -> None:
        turns = conversation.turns
        self.conversations += 1
        self.empty += not turns
        self.branches += len(conversation.branches)
        self.messages += conversation.message_count
        self.kept += len(turns)
        self.skipped.update(dict(conversation.skipped))
        self.left_out.update(dict(conversation.left_out))
        if turns:
            times = [turn.said_at for turn in turns]
            self.first = min(times) if self.first is None else min(self.first, *times)
            self.last = max(times) if self.last is None else max(self.last, *times)
        self._look_up(conversation, len(turns))

    def close(self) -> None:
        self.present += count_present(self.palace, self._batch)
        self._batch.clear()
        self._batch_turns = 0

    def figures(self, format_name: str) -> dict[str, Any]:
        return {
            "format": format_name,
            "conversations": self.conversations,
            "empty_conversations": self.empty,
            "branches": self.branches,
            "messages": self.messages,
            "new": self.kept - self.present,
            "present": self.present,
            "skipped": dict(self.skipped),
            "left_out": dict(self.left_out),
            "first": self.first.isoformat() if self.first else None,
            "last": self.last.isoformat() if self.last else None,
        }

    def _look_up(self, conversation: Conversation, turn_count: int) -> None:
        self._batch.append(conversation)
        self._batch_turns += turn_count
        if self._batch_turns >= LOOKUP_BATCH:
            self.close()


def _create_job(
    palace: Palace,
    name: str,
    sha256: str,
    format_: Format,
    prepared: str,
    survey: Survey | WholeSurvey,
) -> tuple[ImportJob, bool]:
    """A new job, or the one that another process created for the same file meanwhile."""
    with transaction.atomic():
        palace.lock()
        if job := _unfinished(palace, sha256, format_):
            return job, False
        job = ImportJob.objects.create(
            palace=palace,
            file_name=name,
            file_sha256=sha256,
            format=format_.source,
            spool=prepared,
            preview=survey.figures(format_.name),
            conversations_total=survey.conversations,
            messages_total=survey.messages,
        )
        return job, True


def _unfinished(palace: Palace, sha256: str, format_: Format | None) -> ImportJob | None:
    """The job of this file; without a format, of any but the sample's."""
    jobs = ImportJob.objects.filter(
        palace=palace, file_sha256=sha256, status__in=ImportJob.UNFINISHED
    )
    sample = Q(format=importers.SAMPLE.source)
    job = jobs.filter(sample if format_ is importers.SAMPLE else ~sample).order_by("-pk").first()
    return job if job and spool_path(job).is_file() else None


def _sha256(path: Path, name: str) -> str:
    try:
        if path.is_dir():
            return _sha256_of_folder(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadImport(f"{name} cannot be read: {error.strerror}.") from error


def _sha256_of_folder(path: Path) -> str:
    """A digest of the folder's names, sizes and times, not of its content."""
    digest = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        stat = file.stat()
        line = (file.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns)
        digest.update(f"{line}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def prepare_apart(path: Path, name: str, places: Places, *, may_be_whole: bool) -> str:
    """Run `prepare` in a subprocess.

    Raises:
        BadImport: it fails or takes too long.
    """
    deadline = time.monotonic() + settings.READ_UPLOAD_S
    if not connection.in_atomic_block:
        connection.close()  # Release it: this may take minutes.
    if not _slots.acquire(timeout=settings.READ_UPLOAD_S):
        raise BadImport(
            f"{name} has waited too long: other files are being read. Try again in a few minutes."
        )
    try:
        request = {
            "path": str(path),
            "name": name,
            "spool": str(places.spool),
            "listed": str(places.listed),
            "may_be_whole": may_be_whole,
            "seconds": math.ceil(settings.READ_UPLOAD_S),
        }
        return _answer(json.dumps(request), name, deadline - time.monotonic())
    finally:
        _slots.release()


def _answer(request: str, name: str, seconds: float) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own program, with its request on stdin.
            _COMMAND,
            input=request,
            stdout=subprocess.PIPE,
            cwd=settings.BASE_DIR,
            text=True,
            timeout=max(seconds, 0),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadImport(
            f"{name} takes longer than {settings.READ_UPLOAD_S:g} seconds to read, so nothing of "
            "it was imported. The operator of this server can import it with "
            f"`{settings.IMPORT}`, or raise LOCI_READ_UPLOAD_S."
        ) from None
    if done.returncode:
        raise BadImport(
            f"{name} could not be read: the program that reads it stopped. It may be too large for "
            "this machine’s memory; its operator finds more in the log."
        )
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise BadImport(answer["refused"])
    return str(answer["source"])


def delete_unused_palace(palace: Palace) -> None:
    """Delete a palace that holds nothing and into which nothing is being imported."""
    with transaction.atomic():
        # The lock waits for concurrent writers, and lets no other begin.
        for locked in Palace.objects.select_for_update().filter(pk=palace.pk):
            if is_empty(locked) and not ImportJob.objects.filter(palace=locked).exists():
                locked.delete()


def sample_job(palace: Palace) -> ImportJob:
    """The job that loads the sample, or has loaded it.

    Only one loads at a time, and a sample that is there is not loaded again.

    Raises:
        BadImport: There is no room on the disk for its prepared copy.
    """
    jobs = ImportJob.objects.filter(palace=palace, format=importers.SAMPLE.source)
    done = jobs.filter(status=ImportJob.Status.DONE).first()
    drawers = Drawer.objects.filter(palace=palace, source=importers.SAMPLE.source)
    if done and drawers.exists():
        return done
    return preview(palace, SAMPLE_FILE, file_name=SAMPLE_TITLE, format_=importers.SAMPLE)

"""Import a file: `preview` reads it once, completely; `run_slice` files and mines part of it.

A conversation's drawers and the job's progress are committed together, so a job that is killed at
any moment resumes exactly where it stopped, and every message is counted once.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from celery import shared_task
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from language.errors import BadImport, QuotaExceeded
from palace.mining.pipeline import GROUP, mine_rooms, put_in_project
from palace.mining.tasks import enqueue_post_mining
from palace.models import Activity, ImportJob, Palace, Room, in_palace_of
from palace.models.concurrency import attempt, held_if_free, unless_gone
from palace.storage import commit_without_waiting, file_transcript
from palace.storage.indexing.postings import enqueue_compaction
from palace.transfer.import_jobs.job_state import (
    Overtaken,
    discard,
    is_worked_on,
    lock_name,
    move_on,
    pause,
    receipt,
    save,
    standing_still,
    start,
)
from palace.transfer.import_jobs.preparation import (
    SAMPLE_QUESTIONS,
    delete_unused_palace,
    preview,
    preview_in_subprocess,
    sample_job,
    was_imported,
)
from palace.transfer.import_jobs.progress import (
    Progress,
    begin_slice,
    end_slice,
    filed_by,
    on_other_branches,
    progress,
)
from palace.transfer.import_jobs.whole_palace import (
    OnProgress,
    RestoreProgress,
    holds_nothing,
    is_loci_export,
    is_whole,
    make_findable,
    put_back,
    report_restore_progress,
    whole_in_words,
)
from palace.transfer.importers import FORMATS
from palace.transfer.importers.conversation import Conversation, conversation_from_line
from palace.transfer.spools import remove_orphans, spool_path

__all__ = [
    "FORMATS",
    "SAMPLE_QUESTIONS",
    "USUAL_LAG",
    "Progress",
    "RestoreProgress",
    "delete_unused_palace",
    "discard",
    "filed_by",
    "holds_nothing",
    "import_chats",
    "is_loci_export",
    "is_whole",
    "is_worked_on",
    "pause",
    "preview",
    "preview_in_subprocess",
    "progress",
    "receipt",
    "remove_orphans",
    "run_slice",
    "sample_job",
    "standing_still",
    "start",
    "was_imported",
    "whole_in_words",
]

logger = logging.getLogger(__name__)

# Messages that may wait for mining while a job moves: a group and the conversation that filled it.
USUAL_LAG = 2 * GROUP


@shared_task(name="palace.tasks.import_chats", reject_on_worker_lost=False)
def import_chats(job_id: int, offset: int | None = None) -> None:
    """File and mine a slice of an import, then queue the next, so that other tasks can run.

    Args:
        offset: The job's offset when this task was queued. If another task has advanced it, that
            one has queued the next slice, and this task does nothing.
    """
    jobs = ImportJob.objects.select_related("palace").filter(pk=job_id)
    with (
        in_palace_of(jobs) as palace,
        attempt("import", job_id),
        unless_gone(jobs.filter(palace=palace)),
    ):
        job = jobs.get(palace=palace)
        if offset is not None and job.spool_offset != offset:
            return
        if not run_slice(job):
            import_chats.delay(job_id, job.spool_offset)
        enqueue_post_mining(job.palace_id, with_long=True)
        enqueue_compaction(job.palace, with_long=True)


def run_slice(
    job: ImportJob,
    *,
    seconds: float = 10,
    is_interrupted: Callable[[], bool] | None = None,
    on_progress: OnProgress | None = None,
) -> bool:
    """File and mine conversations of a running job for about that long, at least one.

    Args:
        is_interrupted: Called after each conversation; if true, the slice ends.
        on_progress: Called with the progress of a restore, which the job's page shows as well.

    Returns whether the caller is done: the job no longer runs, or another
    process is running it. Updates `job`'s figures.

    Raises:
        ImportJob.DoesNotExist: It was discarded meanwhile.
    """
    deadline = time.monotonic() + seconds

    def is_over() -> bool:
        return time.monotonic() > deadline or bool(is_interrupted and is_interrupted())

    with held_if_free(lock_name(job)) as ours:
        job.refresh_from_db()
        if not ours or job.status != ImportJob.Status.RUNNING:
            return True
        begin_slice(job)
        try:
            return _run_whole(job, is_over, on_progress) if is_whole(job) else _run(job, is_over)
        except (BadImport, QuotaExceeded) as error:
            _fail(job, str(error))
        except Overtaken:
            job.refresh_from_db()
        finally:
            end_slice(job)
        # Paused and restarted within this slice; no other process ran it.
        return job.status != ImportJob.Status.RUNNING


def _run(job: ImportJob, is_over: Callable[[], bool]) -> bool:
    """True when all is filed and mined, False when the slice is over before that."""
    rooms: list[Room] = []
    mined = job.messages_stored
    for line in _lines(job):
        try:
            rooms += _file_line(job, line)
        except (Overtaken, QuotaExceeded):
            _mine(rooms)
            raise
        if job.messages_stored - mined >= GROUP:
            _mine(rooms)
            rooms, mined = [], job.messages_stored
        if is_over():
            _mine(rooms)
            return False
    _mine(rooms)
    _mine_what_is_left(job)
    _finish(job)
    return True


def _run_whole(job: ImportJob, is_over: Callable[[], bool], on_progress: OnProgress | None) -> bool:
    """`_run` for restoring a palace: mined rooms only need indexing."""

    def show(progress: RestoreProgress) -> None:
        report_restore_progress(job, progress)
        if on_progress:
            on_progress(progress)

    if not job.spool_offset:
        put_back(job, show)
    if not make_findable(job, is_over, show):
        return False
    _mine_what_is_left(job)
    _finish(job)
    return True


def _mine_what_is_left(job: ImportJob) -> None:
    for room in _filed_but_not_mined(job):  # One by one: there may be too many to lock at once.
        _mine([room])


def _mine(rooms: list[Room]) -> None:
    """Mine a room; a failure leaves it filed and does not stop the others."""
    try:
        mine_rooms(rooms)
    except Exception:
        if len(rooms) > 1:
            for room in rooms:
                _mine([room])
            return
        logger.exception(
            "Room %s is filed, but mining it failed; the periodic task tries it again.",
            rooms[0].uuid,
        )


def _lines(job: ImportJob) -> Iterator[bytes]:
    """The conversations that are not filed yet."""
    try:
        with spool_path(job).open("rb") as lines:
            lines.seek(job.spool_offset)
            yield from lines
    except OSError as error:
        raise BadImport(
            f"The prepared copy of the file cannot be read ({error.strerror}); import it again."
        ) from error


def _filed_but_not_mined(job: ImportJob) -> QuerySet[Room]:
    """Rooms that a kill between filing and mining left; normally none."""
    unmined = filed_by(job).unmined()
    rooms = Room.objects.select_related("palace", "wing").filter(
        palace=job.palace_id, pk__in=unmined.values("room")
    )
    return rooms.order_by("pk")


def _file_line(job: ImportJob, line: bytes) -> list[Room]:
    """File one conversation and record that it was, both or neither."""
    conversation = conversation_from_line(line)
    with transaction.atomic():
        # After a power cut it is filed again from the spool: its progress is lost too.
        commit_without_waiting()
        tally = _file_conversation(job.palace, conversation)
        move_on(
            job,
            spool_offset=job.spool_offset + len(line),
            conversations_done=job.conversations_done + 1,
            messages_stored=job.messages_stored + tally.stored,
            messages_present=job.messages_present + tally.present,
            messages_skipped=dict(Counter(job.messages_skipped) + tally.skipped),
        )
    return tally.rooms


@dataclass(slots=True)
class _Tally:
    stored: int = 0
    present: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    rooms: list[Room] = field(default_factory=list)


def _file_conversation(palace: Palace, conversation: Conversation) -> _Tally:
    tally = _Tally(skipped=Counter(dict(conversation.skipped)))
    elsewhere = on_other_branches(palace, conversation)
    for transcript in conversation.transcripts:
        name = transcript.external_id
        turns = tuple(
            turn
            for turn in transcript.turns
            if elsewhere.get((turn.external_id, turn.text), name) == name
        )
        filed = file_transcript(palace, replace(transcript, turns=turns))
        tally.stored += filed.stored
        tally.present += filed.present + len(transcript.turns) - len(turns)
        tally.skipped += filed.skipped
        if filed.room and filed.stored:
            if transcript.project:
                put_in_project(palace, filed.room, transcript.project)
            tally.rooms.append(filed.room)
    return tally


def _finish(job: ImportJob) -> None:
    if job.conversations_done != job.conversations_total:
        raise BadImport("The prepared copy of the file is damaged; import it again.")
    with transaction.atomic():
        save(job, status=ImportJob.Status.DONE, finished_at=timezone.now())
        Activity.objects.create(
            palace=job.palace,
            kind=Activity.Kind.CHATS_IMPORTED,
            summary=_summary(job)[:300],
            detail={**receipt(job), "job": str(job.uuid)},
        )
    spool_path(job).unlink(missing_ok=True)


def _summary(job: ImportJob) -> str:
    if is_whole(job):
        return f"Put back a whole palace, with {job.messages_stored:,} messages: {job.file_name}."
    messages = "message" if job.messages_stored == 1 else "messages"
    conversations = "conversation" if job.conversations_total == 1 else "conversations"
    return (
        f"Imported {job.messages_stored:,} new {messages} from {job.conversations_total:,} "
        f"{conversations} in {job.file_name}."
    )


def _fail(job: ImportJob, sentence: str) -> None:
    """Fail the job: what was filed stays; the file must be uploaded again."""
    save(job, status=ImportJob.Status.FAILED, error=sentence, finished_at=timezone.now())
    with suppress(OSError):
        spool_path(job).unlink(missing_ok=True)

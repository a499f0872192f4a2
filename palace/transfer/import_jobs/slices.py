"""Run a job in slices, resumable at every conversation, and write its receipt."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from llm.commits import commit_without_waiting
from palace.errors import BadImport
from palace.mining.rooms import GROUP
from palace.models import Activity, ImportJob, Palace, Room
from palace.models.locks import held_if_free, is_held
from palace.pipeline import mine_rooms
from palace.storage import file_transcript
from palace.transfer.import_jobs.already_filed import filed_by, on_other_branches
from palace.transfer.import_jobs.progress import Overtaken, move_on, save
from palace.transfer.import_jobs.spools import spool_path
from palace.transfer.import_jobs.whole_palace import is_whole, make_findable, put_back
from palace.transfer.importers import spool
from palace.transfer.importers.conversation import Conversation

logger = logging.getLogger(__name__)


def run_slice(
    job: ImportJob, *, seconds: float = 10, is_interrupted: Callable[[], bool] | None = None
) -> bool:
    """File and mine conversations of a running job for about that long, at least one.

    Args:
        is_interrupted: Called after each conversation; if true, the slice ends.

    Returns whether the caller is done: the job no longer runs, or another
    process is running it. Updates `job`'s figures.

    Raises:
        ImportJob.DoesNotExist: It was discarded meanwhile.
    """
    deadline = time.monotonic() + seconds

    def is_over() -> bool:
        return time.monotonic() > deadline or bool(is_interrupted and is_interrupted())

    with held_if_free(_lock_name(job)) as ours:
        job.refresh_from_db()
        if not ours or job.status != ImportJob.Status.RUNNING:
            return True
        save(job, progress_at=timezone.now())
        try:
            return (_run_whole if is_whole(job) else _run)(job, is_over)
        except BadImport as error:
            _fail(job, str(error))
        except Overtaken:
            job.refresh_from_db()
        # Paused and restarted within this slice; no other process ran it.
        return job.status != ImportJob.Status.RUNNING


def start(job: ImportJob) -> bool:
    """Start a waiting job, from its beginning or where it was paused.

    From now on the periodic task resumes it if no process runs it. Returns False, with nothing
    changed, for one that runs already or has ended.
    """
    waiting = ImportJob.objects.filter(pk=job.pk, status=ImportJob.Status.READY)
    started = waiting.update(status=ImportJob.Status.RUNNING, progress_at=timezone.now())
    job.refresh_from_db()
    return started == 1


def pause(job: ImportJob) -> bool:
    """Pause a running job at its next conversation.

    Returns False, with nothing changed, for one that does not run.
    """
    running = ImportJob.objects.filter(pk=job.pk, status=ImportJob.Status.RUNNING)
    paused = running.update(status=ImportJob.Status.READY)
    job.refresh_from_db()
    return paused == 1


def discard(job: ImportJob) -> bool:
    """Delete a job; what it has filed stays.

    Returns False, with nothing changed, for one that runs or whose receipt is to be kept.
    """
    idle = (ImportJob.Status.READY, ImportJob.Status.FAILED)
    deleted, _ = ImportJob.objects.filter(pk=job.pk, status__in=idle).delete()
    if deleted:
        spool_path(job).unlink(missing_ok=True)
    return deleted == 1


def is_worked_on(job: ImportJob) -> bool:
    """Whether a process is running it at this moment."""
    return is_held(_lock_name(job))


def standing_still(since: datetime) -> QuerySet[ImportJob, int]:
    """Keys of running jobs without progress since then."""
    running = ImportJob.objects.filter(status=ImportJob.Status.RUNNING, progress_at__lt=since)
    return running.order_by("pk").values_list("pk", flat=True)


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


def _run(job: ImportJob, is_over: Callable[[], bool]) -> bool:
    """True when all is filed and mined, False when the slice is over before that."""
    rooms: list[Room] = []
    mined = job.messages_stored
    for line in _lines(job):
        try:
            rooms += _file_line(job, line)
        except Overtaken:
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


def _run_whole(job: ImportJob, is_over: Callable[[], bool]) -> bool:
    """`_run` for restoring a palace: mined rooms only need indexing."""
    if not job.spool_offset:
        put_back(job)
    if not make_findable(job.palace, is_over):
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
    conversation = spool.from_line(line)
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


def _lock_name(job: ImportJob) -> str:
    return f"import {job.pk}"

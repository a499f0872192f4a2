"""How far an import is: which messages of an export are filed already, on any branch, and how long
the rest may take.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from palace.models import Drawer, DrawerQuerySet, ImportJob, Palace
from palace.transfer.import_jobs.job_state import receipt, save
from palace.transfer.import_jobs.whole_palace import (
    RestoreProgress,
    is_whole,
    read_restore_progress,
)
from palace.transfer.importers import LOCI
from palace.transfer.importers.conversation import Conversation, branch_id


def filed_by(job: ImportJob) -> DrawerQuerySet:
    """The drawers of earlier imports of this kind; for a Loci export, of any source."""
    drawers = Drawer.objects.filter(palace=job.palace_id)
    return drawers if job.format == LOCI.source else drawers.filter(source=job.format)


def count_present(palace: Palace, conversations: list[Conversation]) -> int:
    """The number of messages filed already, on any branch."""
    if not conversations:
        return 0
    owners = {
        (each.transcript.source, name): each.transcript.external_id
        for each in conversations
        for name in _family(each)
    }
    wanted = {
        (each.transcript.source, each.transcript.external_id, turn.external_id)
        for each in conversations
        for turn in each.turns
    }
    drawers = Drawer.objects.filter(
        palace=palace,
        source__in={source for source, _ in owners},
        conversation__in={name for _, name in owners},
    ).values_list("source", "conversation", "external_id")
    present = {
        (source, owners[source, name], external_id)
        for source, name, external_id in drawers.iterator()
        if (source, name) in owners
    }
    return len(wanted & present)


def on_other_branches(palace: Palace, conversation: Conversation) -> dict[tuple[str, str], str]:
    """The existing drawers of the conversation's messages, by (message id, text).

    An earlier export may have had another branch as the main one: a message is filed once.
    """
    if not conversation.branches:
        return {}
    palace.lock()
    drawers = Drawer.objects.filter(
        palace=palace,
        source=conversation.transcript.source,
        conversation__in=_family(conversation),
    )
    kept = drawers.values_list("external_id", "text", "conversation")
    return {(external_id, text): name for external_id, text, name in kept}


def _family(conversation: Conversation) -> set[str]:
    """The conversation ids under which these messages may be filed.

    Which branch is the main one changes from export to export, and a branch grows; but it is
    always named for one of its messages.
    """
    main = conversation.transcript.external_id
    names = {transcript.external_id for transcript in conversation.transcripts}
    if conversation.branches:
        names.update(branch_id(main, turn.external_id) for turn in conversation.turns)
    return names


# Before that, a speed says nothing.
LEAST_TIME = timedelta(seconds=5)
LEAST_MESSAGES = 20
# After such a pause, when no worker ran for example, the speed is measured from there.
LONGEST_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """
    Attributes:
        done: Of `total`; a message is done when it is filed and mined, or skipped. Filed alone it
            counts half.
        filed: Of `total`, what is in the palace or skipped; `unsorted` of it is not mined yet.
        unit: What is counted: an export may have conversations without messages.
        seconds_left: At the speed measured so far; None while that says nothing.
        restoring: The phase of a restore of a whole palace, while it runs.
    """

    done: int
    total: int
    filed: int
    unsorted: int = 0
    unit: str = "message"
    seconds_left: float | None = None
    restoring: RestoreProgress | None = None

    @property
    def percent(self) -> int:
        """0 to 100; 100 only when nothing waits."""
        return self.done * 100 // self.total if self.total else 0


def progress(job: ImportJob) -> Progress:
    is_running = job.status == ImportJob.Status.RUNNING
    restoring = read_restore_progress(job) if is_running and is_whole(job) else None
    if restoring:
        done = restoring.done
        return Progress(done, restoring.total, done, unit="row", restoring=restoring)
    if not job.messages_total:
        done = job.conversations_done
        return Progress(done, job.conversations_total, done, unit="conversation")
    filed, unsorted = _messages(job)
    # Sorting takes by far the most of the time.
    left = _seconds_left(job, filed - unsorted) if is_running else None
    return Progress(
        filed - (unsorted + 1) // 2, job.messages_total, filed, unsorted, seconds_left=left
    )


def _messages(job: ImportJob) -> tuple[int, int]:
    """Those that are accounted for, and how many of them wait for mining while the job runs."""
    figures = receipt(job)
    filed = int(figures["in"] - figures["waiting"])
    if job.status != ImportJob.Status.RUNNING or not job.messages_stored:
        return filed, 0
    return filed, min(filed_by(job).unmined().count(), job.messages_stored)


def begin_slice(job: ImportJob) -> None:
    """Record that a process works on the job, and measure its speed from here after a pause."""
    now = timezone.now()
    values: dict[str, Any] = {"progress_at": now}
    last = job.progress_at or now
    if job.measured_from is None or now - last > LONGEST_PAUSE:
        filed, unsorted = _messages(job)
        values |= {"measured_from": now, "measured_done": filed - unsorted}
    save(job, **values)


def end_slice(job: ImportJob) -> None:
    """Record when the work ended, unless the job has ended too."""
    running = ImportJob.objects.filter(
        palace=job.palace_id, pk=job.pk, status=ImportJob.Status.RUNNING
    )
    running.update(progress_at=timezone.now())


def _seconds_left(job: ImportJob, mined: int) -> float | None:
    if job.measured_from is None:
        return None
    passed, measured = timezone.now() - job.measured_from, mined - job.measured_done
    if passed < LEAST_TIME or measured < LEAST_MESSAGES:
        return None
    return (job.messages_total - mined) * passed.total_seconds() / measured

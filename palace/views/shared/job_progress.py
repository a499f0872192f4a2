"""An import's state, figures, and the wings its messages went to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Count
from django.utils import timezone

from llm.providers import Endpoint
from palace.mining.rooms import GROUP
from palace.models import ImportJob, Wing
from palace.templatetags.palace_tags import counted
from palace.transfer import import_jobs
from palace.transfer.importers.formats import LOCI
from settings_app.models import settings_of

# Between two slices nobody is at a job; only after this long does the page call it waiting.
PAUSE_BETWEEN_SLICES = timedelta(seconds=5)
# The periodic task has taken a job up long before, if a worker runs at all.
TOO_LONG = timedelta(minutes=5)
WINGS_SHOWN = 8
# A group and the conversation that filled it.
USUAL_LAG = 2 * GROUP

PREVIEW, PAUSED, WORKING, WAITING, DONE, FAILED = (
    "preview",
    "paused",
    "working",
    "waiting",
    "done",
    "failed",
)
_QUARTERS = ("", "A quarter is imported.", "Half is imported.", "Three quarters are imported.")


@dataclass(frozen=True, slots=True)
class WingShare:
    wing: Wing
    rooms: int
    drawers: int


class JobProgress:
    """An import as a page shows it."""

    def __init__(self, job: ImportJob) -> None:
        self.job = job
        self.preview: dict[str, Any] = job.preview
        self.receipt = import_jobs.receipt(job)

    @cached_property
    def state(self) -> str:
        status = self.job.status
        if status == ImportJob.Status.READY:
            return PAUSED if self.job.spool_offset else PREVIEW
        if status == ImportJob.Status.RUNNING:
            return WAITING if self._stands_still else WORKING
        return DONE if status == ImportJob.Status.DONE else FAILED

    @property
    def is_moving(self) -> bool:
        """Whether the page has to poll."""
        return self.job.status == ImportJob.Status.RUNNING

    @property
    def has_begun(self) -> bool:
        return self.job.spool_offset > 0

    @property
    def waits_too_long(self) -> bool:
        return self._since_progress > TOO_LONG

    @property
    def counted_in(self) -> str:
        """What the bar counts; an export may hold conversations without any message."""
        return "message" if self.receipt["in"] else "conversation"

    @property
    def done(self) -> int:
        if self.receipt["in"]:
            return int(self.receipt["in"] - self.receipt["waiting"])
        return self.job.conversations_done

    @property
    def total(self) -> int:
        return int(self.receipt["in"]) or self.job.conversations_total

    @property
    def percent(self) -> int:
        """0 to 100, and 100 only when nothing is left."""
        return self.done * 100 // self.total if self.total else 0

    @cached_property
    def unmined(self) -> int:
        """Messages of this kind of export that are filed, but cannot be found by all means yet.

        Not worth a word, and 0 here, while it is the few that are filed and mined together.
        """
        if self.state in {PREVIEW, FAILED}:
            return 0
        drawers = import_jobs.filed_by(self.job)
        if self.job.finished_at:  # Later imports have pages of their own.
            drawers = drawers.filter(filed_at__lte=self.job.finished_at)
        count = drawers.unmined().count()
        is_as_usual = self.is_moving and self.receipt["waiting"] and count <= USUAL_LAG
        return 0 if is_as_usual else count

    @cached_property
    def whole(self) -> list[str]:
        """What comes back with the messages of a palace that is put back as a whole, in words."""
        return import_jobs.whole_in_words(self.job)

    @property
    def is_messages_alone(self) -> bool:
        """Whether the file holds more than is taken of it, as the palace is not empty."""
        return self.job.format == LOCI.source and not self.whole

    @property
    def reader(self) -> Endpoint | None:
        """The model that is going to read what is new, which its provider charges for."""
        return settings_of(self.job.palace.owner_id).chat_model().endpoint

    @property
    def title(self) -> str:
        """Also for the tab of a browser that shows something else meanwhile."""
        how_far = {WORKING: f"{self.percent}%", WAITING: f"{self.percent}%", DONE: "Done"}
        words = [how_far.get(self.state, ""), self.job.file_name, "Import", "Loci"]
        return " – ".join(filter(None, words))

    @property
    def said(self) -> str:
        """For people who hear the page: changes with the state, and four times on the way."""
        match self.state:
            case "working":
                return _QUARTERS[min(self.percent // 25, 3)] or "The import is running."
            case "waiting":
                return "The import waits for a worker."
            case "done":
                return f"The import is done: {counted(self.receipt['stored'], 'new message')}."
            case "failed":
                return f"The import has stopped. {self.job.error}"
        return ""

    @property
    def first(self) -> datetime | None:
        return _moment(self.preview.get("first"))

    @property
    def last(self) -> datetime | None:
        return _moment(self.preview.get("last"))

    @cached_property
    def shares(self) -> list[WingShare]:
        """The wings that hold what was filed from this source meanwhile, the fullest first."""
        filed = import_jobs.filed_by(self.job).kept()
        if not self.whole:  # What is put back was filed long before.
            until = self.job.finished_at or timezone.now()
            filed = filed.filter(filed_at__range=(self.job.created_at, until))
        counts = (
            filed.order_by()
            .values("room__wing")
            .annotate(rooms=Count("room", distinct=True), drawers=Count("pk"))
            .order_by("-drawers", "room__wing")[:WINGS_SHOWN]
        )
        by_wing = {row["room__wing"]: (row["rooms"], row["drawers"]) for row in counts}
        wings = Wing.objects.filter(palace=self.job.palace_id).in_bulk(by_wing)
        return [WingShare(wings[pk], *figures) for pk, figures in by_wing.items()]

    @property
    def _stands_still(self) -> bool:
        if self._since_progress < PAUSE_BETWEEN_SLICES:
            return False
        return not import_jobs.is_worked_on(self.job)

    @property
    def _since_progress(self) -> timedelta:
        return timezone.now() - (self.job.progress_at or self.job.created_at)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

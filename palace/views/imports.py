"""Import files: upload and preview one, start, pause or discard its import, see the progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import (
    HttpResponseClientRedirect,
    reswap,
    retarget,
    trigger_client_event,
)
from kombu.exceptions import OperationalError

from language.errors import BadImport
from llm.providers import Endpoint
from palace.curation.deletion import remove_sample
from palace.mining.pipeline import suggested_wings
from palace.models import ImportJob, Palace, Wing
from palace.transfer import import_jobs
from palace.transfer.spools import largest_file, largest_request
from palace.views.shared.frame_tags import ImportNow
from palace.views.shared.query_params import CountedPage, find_by_uuid
from settings_app.models import ModelUse, settings_of
from settings_app.pages import (
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
    signed_in_poll,
)
from settings_app.row_tags import counted

# Between two slices no process runs a job; only after this pause does the page call it waiting.
PAUSE_BETWEEN_SLICES = timedelta(seconds=5)
# If a worker runs, the periodic task has resumed a job by then.
TOO_LONG = timedelta(minutes=5)
WINGS_SHOWN = 8
PREVIEW, PAUSED, WORKING, WAITING, DONE, FAILED = (
    "preview",
    "paused",
    "working",
    "waiting",
    "done",
    "failed",
)
# An event for pages that show the palace: there is more of it.
GREW = "palace-grew"
_QUARTERS = ("", "A quarter is imported.", "Half is imported.", "Three quarters are imported.")


@signed_in_form
def imports(request: PageRequest) -> HttpResponse:
    """The upload form and earlier imports; POST reads a file and leads to its preview."""
    palace = Palace.objects.own(request.user)
    if request.method != "POST":
        return _show_imports(request, palace)
    try:
        job = _look_into(request, palace)
    except BadImport as error:
        return _show_imports(request, palace, error=str(error))
    if job.status == ImportJob.Status.RUNNING or job.spool_offset:
        messages.info(request, "This file is being imported already; this is its progress.")
    address = job.get_absolute_url()
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


@signed_in_page
def import_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Preview, progress or receipt; a page that polls for progress also gets the receipt."""
    shown = JobProgress(_own_job(request, uuid))
    part = "progress" if shown.is_moving else "job"
    response = render_page_or_part(request, "palace/import_detail.html", part, {"shown": shown})
    if request.htmx and not shown.is_moving:
        retarget(response, "#job")
        reswap(response, "outerHTML")
    return response


@signed_in_action
def import_start(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Start or resume the import, unless it runs or has ended."""
    job = _own_job(request, uuid)
    if import_jobs.start(job):
        _queue(request, job)
    return redirect(job)


@signed_in_action
def import_pause(request: PageRequest, uuid: UUID) -> HttpResponse:
    job = _own_job(request, uuid)
    if not import_jobs.pause(job):
        messages.info(request, "There was nothing to pause: the import is not running.")
    return redirect(job)


@signed_in_action
def import_discard(request: PageRequest, uuid: UUID) -> HttpResponse:
    job = _own_job(request, uuid)
    if not import_jobs.discard(job):
        messages.error(request, _why_not_discarded(job))
        return redirect(job)
    filed = "What it had filed stays in your palace." if job.messages_stored else ""
    messages.success(request, f"{job.file_name} is discarded. {filed or 'Nothing was imported.'}")
    return redirect("imports")


@require_safe
@signed_in_poll
def import_now(request: PageRequest) -> HttpResponse:
    """The import in the rail, which asks for itself while it runs; empty if there is none."""
    palace = Palace.objects.own(request.user)
    job = find_by_uuid(ImportJob.objects.filter(palace=palace), request.GET.get("job", ""))
    shown = ImportNow(job) if job else None
    was_said = request.GET.get("said")
    context = {"shown": shown, "is_new": shown and shown.said != was_said}
    response = render(request, "palace/_import_now.html", context)
    if shown and str(shown.progress.done) != request.GET.get("done"):
        trigger_client_event(response, GREW)
    return response


@signed_in_action
def sample_load(request: PageRequest) -> HttpResponse:
    """Load the sample palace; where a model would read it, which may cost money, preview it."""
    palace = Palace.objects.own(request.user)
    try:
        job = import_jobs.sample_job(palace)
    except BadImport as error:
        messages.error(request, str(error))
        return redirect("memory")
    if job.status == ImportJob.Status.READY and JobProgress(job).reader:
        return redirect(job)
    if import_jobs.start(job):
        _queue(request, job)
    return redirect("memory")


@signed_in_action
def sample_remove(request: PageRequest) -> HttpResponse:
    removed = remove_sample(Palace.objects.own(request.user))
    if not removed.messages:
        messages.info(request, "There was no sample to remove.")
        return redirect("memory")
    # Rendering has marked the text as safe; it has figures and addresses only.
    said = render_to_string("palace/_undo_sample.html", {"removed": removed}, request)
    messages.success(request, said)
    return redirect("memory")


def _own_job(request: PageRequest, uuid: UUID) -> ImportJob:
    palace = Palace.objects.own(request.user)
    return get_object_or_404(ImportJob.objects.filter(palace=palace), uuid=uuid)


def _queue(request: PageRequest, job: ImportJob) -> None:
    try:
        import_jobs.import_chats.delay(job.pk, job.spool_offset)
    except OperationalError:
        # It is marked as running, so the periodic task resumes it.
        messages.warning(
            request,
            "The queue (Redis) does not answer at the moment. The import is marked to run and "
            "begins by itself, a minute or two after the queue is back.",
        )


def _why_not_discarded(job: ImportJob) -> str:
    if job.status == ImportJob.Status.RUNNING:
        return "The import is running. Pause it first, then discard it."
    return "This import has ended; its receipt is kept."


def _show_imports(request: PageRequest, palace: Palace, *, error: str = "") -> HttpResponse:
    jobs = CountedPage(ImportJob.objects.filter(palace=palace), request.GET.get("page"))
    context = {
        "error": error,
        "jobs": jobs,
        "rows": [JobProgress(job) for job in jobs.rows],
        "formats": import_jobs.FORMATS.values(),
        "largest": largest_file(),
        "largest_mb": settings.MAX_UPLOAD_MB,
    }
    part = "form" if request.method == "POST" else "earlier"
    status = 400 if error else 200
    return render_page_or_part(request, "palace/imports.html", part, context, status=status)


def _look_into(request: PageRequest, palace: Palace) -> ImportJob:
    """The job of the uploaded file, ready to start.

    Raises:
        BadImport: there is no file, it arrived incomplete, or it is not an export.
    """
    upload = request.FILES.get("file")
    if not isinstance(upload, TemporaryUploadedFile):
        raise BadImport(_why_no_file(request))
    with upload:  # Delete it now, also after an error, and not at garbage collection.
        name = upload.name or "The file"
        if (upload.size or 0) > largest_file():
            raise BadImport(_too_large(name))
        if not upload.size:
            raise BadImport(f"{name} is empty. Download the export again, and give that file.")
        path = Path(upload.temporary_file_path())
        return import_jobs.preview_in_subprocess(palace, path, file_name=name)


def _why_no_file(request: PageRequest) -> str:
    """A truncated upload, too large or broken off, counts as no file."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and int(length) > largest_request():
        return _too_large("The file")
    # The form's last field, after the file.
    if "whole" in request.POST:
        return "Choose a file first: an export of another program, Markdown, or JSON Lines."
    return (
        "The file did not arrive whole: the connection broke off, or the server's disk is full. "
        "Nothing was kept; try again."
    )


def _too_large(name: str) -> str:
    return (
        f"{name} is larger than the {settings.MAX_UPLOAD_MB:,.0f} MB that may be uploaded here. "
        f"The operator of this server can import it with `{settings.IMPORT}`, or "
        "raise LOCI_MAX_UPLOAD_MB."
    )


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

    @cached_property
    def progress(self) -> import_jobs.Progress:
        return import_jobs.progress(self.job)

    @property
    def restoring(self) -> import_jobs.RestoreProgress | None:
        """How far the restore of a whole palace is, while it runs."""
        return self.progress.restoring

    @property
    def percent(self) -> int:
        return self.progress.percent

    @cached_property
    def unmined(self) -> int:
        """Messages from this source that are filed but not mined.

        0 while only the usual batch waits, whose messages are mined together.
        """
        if self.state in {PREVIEW, FAILED}:
            return 0
        drawers = import_jobs.filed_by(self.job)
        if self.job.finished_at:  # Later imports have pages of their own.
            drawers = drawers.filter(filed_at__lte=self.job.finished_at)
        count = drawers.unmined().count()
        is_as_usual = self.is_moving and self.receipt["waiting"] and count <= import_jobs.USUAL_LAG
        return 0 if is_as_usual else count

    @cached_property
    def whole(self) -> list[str]:
        """Records other than messages that restoring a whole palace brings, in words."""
        return import_jobs.whole_in_words(self.job)

    @property
    def is_messages_alone(self) -> bool:
        """Whether only the messages of a Loci export are imported, as the palace is not empty."""
        return import_jobs.is_loci_export(self.job) and not import_jobs.is_whole(self.job)

    @property
    def holds_nothing(self) -> bool:
        return import_jobs.holds_nothing(self.job)

    @property
    def reader(self) -> Endpoint | None:
        """The model that will read new messages, which costs money; None without one."""
        chosen = settings_of(self.job.palace.owner_id)
        filing = chosen.chat_model(ModelUse.FILING).endpoint
        return filing or chosen.chat_model(ModelUse.FACTS).endpoint

    @property
    def title(self) -> str:
        """The title, with the progress first, which a background tab shows."""
        how_far = {WORKING: f"{self.percent}%", WAITING: f"{self.percent}%", DONE: "Done"}
        words = [how_far.get(self.state, ""), self.job.file_name, "Import", "Loci"]
        return " – ".join(filter(None, words))

    @property
    def said(self) -> str:
        """For screen readers: changes with the state, and with each quarter or phase."""
        match self.state:
            case "working" if self.restoring:
                return f"{self.restoring.phase}."
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
        """The wings with the messages this import filed, the fullest first."""
        filed = import_jobs.filed_by(self.job).kept()
        if not self.whole:  # Restored messages were filed long before.
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

    @cached_property
    def wings_suggested(self) -> int:
        """How many more wings Review suggests, for what is filed together so far."""
        return len(suggested_wings(self.job.palace))

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

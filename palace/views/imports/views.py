"""Bringing conversations in: a file is looked into, shown, and imported by a worker."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django_htmx.http import HttpResponseClientRedirect, reswap, retarget
from kombu.exceptions import OperationalError

from palace import tasks
from palace.errors import BadImport
from palace.models import ImportJob, Palace
from palace.transfer import import_jobs
from palace.transfer.importers.uploads import largest_file, largest_request
from palace.views.imports.job_progress import JobProgress
from palace.views.shared.pagination import CountedPage
from settings_app.pages import (
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)


@signed_in_form
def imports(request: PageRequest) -> HttpResponse:
    """The field for a file, and the imports there were; with a file, the way to its preview."""
    palace = Palace.objects.own(request.user)
    if request.method != "POST":
        return _show_imports(request, palace)
    try:
        job = _look_into(request, palace)
    except BadImport as error:
        return _show_imports(request, palace, error=str(error))
    if job.status == ImportJob.Status.RUNNING or job.spool_offset:
        messages.info(request, "This file is on its way in already; here is how far it is.")
    address = job.get_absolute_url()
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


@signed_in_page
def import_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Preview, progress or receipt; a page that polls for progress gets the end as well."""
    shown = JobProgress(_own_job(request, uuid))
    part = "progress" if shown.is_moving else "job"
    response = render_page_or_part(request, "palace/import_detail.html", part, {"shown": shown})
    if request.htmx and not shown.is_moving:
        retarget(response, "#job")
        reswap(response, "outerHTML")
    return response


@signed_in_action
def import_start(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Start or resume the import; one that runs or has ended stays as it is."""
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


def _own_job(request: PageRequest, uuid: UUID) -> ImportJob:
    palace = Palace.objects.own(request.user)
    return get_object_or_404(ImportJob.objects.filter(palace=palace), uuid=uuid)


def _queue(request: PageRequest, job: ImportJob) -> None:
    try:
        tasks.import_chats.delay(job.pk, job.spool_offset)
    except OperationalError:
        # It is marked as running, so the periodic task takes it up.
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
        "largest": largest_file(),
        "largest_mb": settings.MAX_UPLOAD_MB,
    }
    part = "form" if request.method == "POST" else "earlier"
    status = 400 if error else 200
    return render_page_or_part(request, "palace/imports.html", part, context, status=status)


def _look_into(request: PageRequest, palace: Palace) -> ImportJob:
    """The job of the uploaded file, ready to start.

    Raises:
        BadImport: There is none, it did not arrive whole, or it is no export. Nothing is kept.
    """
    upload = request.FILES.get("file")
    if not isinstance(upload, TemporaryUploadedFile):
        raise BadImport(_why_no_file(request))
    with upload:  # Left by an error or not, it is deleted now and not when memory is tidied.
        name = upload.name or "The file"
        if (upload.size or 0) > largest_file():
            raise BadImport(_too_large(name))
        if not upload.size:
            raise BadImport(f"{name} is empty. Download the export again, and give that file.")
        return import_jobs.preview_apart(palace, Path(upload.temporary_file_path()), file_name=name)


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
        "The operator of this server can import it with `manage.py import_chats`, or raise "
        "LOCI_MAX_UPLOAD_MB."
    )

"""`manage.py import_chats FILE`: a look at what is in the file, the import, and its receipt."""

from __future__ import annotations

import json
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from contextlib import ExitStack, nullcontext
from pathlib import Path
from threading import Event
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from kombu.exceptions import OperationalError
from tqdm import tqdm

from config.management.base import PalaceCommand, StopSignals, add_user_argument, palace_or_new
from config.management.watched_folder import WatchedFolder
from isolation import row_access
from language.errors import BadImport
from palace.mining import tasks
from palace.models import ImportJob, Palace
from palace.models.concurrency import held_if_free, is_held
from palace.sdk.operations import account_of
from palace.sdk.process import bring_tables_up_to_date
from palace.storage.indexing import postings
from palace.transfer import import_jobs

# How often the progress bar moves, at least.
SLICE_S = 1.0
# A watched file is complete once it has not changed for so long.
LOOK_EVERY_S = 2.0
INTERRUPTED = 130


class Command(PalaceCommand):
    as_json: bool
    # While a folder is watched, one watch for Ctrl-C is kept over all its files: none is missed.
    signals: StopSignals | None = None
    help = (
        "Import conversations: a file, zip or folder in one of the formats in "
        f"{settings.DOCS_PAGE.format('importing')}. "
        "Importing twice adds nothing; an import that was stopped goes on with the same command. "
        "The exit status is not 0 if nothing could be stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_user_argument(parser)
        parser.add_argument("--yes", action="store_true", help="Import without asking.")
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--preview", action="store_true", help="Only look; change nothing.")
        how.add_argument(
            "--background", action="store_true", help="Leave the work to the running Loci."
        )
        how.add_argument(
            "--watch",
            action="store_true",
            help="FILE is a folder: import each file in it, and what is put there, until Ctrl-C.",
        )
        # For `run`, which would start a watch that ends again and again.
        parser.add_argument("--patient", action="store_true", help=SUPPRESS)
        parser.add_argument(
            "--json", action="store_true", help="Import without asking; print one JSON object."
        )

    def handle(self, *, file: Path, user: str, subject: str, **options: Any) -> None:
        self.as_json = options["json"]
        if options["watch"] and not file.is_dir():
            raise CommandError(f"--watch takes a folder, and {file} is none.")
        new_owner = _prepare_installation() if settings.USES_EMBEDDED_SERVICES else None
        palace, is_new = palace_or_new(user, subject)
        try:
            if options["watch"]:
                folder = WatchedFolder(file, left_out=settings.LOCI_HOME)
                self._watch(palace, folder, is_patient=options["patient"])
            else:
                self._handle(palace, file, **options)
        except KeyboardInterrupt as error:
            raise CommandError("Stopped; nothing was imported.", returncode=INTERRUPTED) from error
        finally:
            if is_new:
                import_jobs.delete_unused_palace(palace)
            if new_owner and not Palace.objects.filter(owner=new_owner).exists():
                with row_access.maintenance():
                    new_owner.delete()

    def _handle(self, palace: Palace, file: Path, **options: Any) -> None:
        job = self._prepared(palace, file)
        self._show_preview(job)
        has_begun = job.spool_offset > 0 or job.status == ImportJob.Status.RUNNING
        if options["preview"] or import_jobs.holds_nothing(job):
            self._show_json({"file": job.file_name, "preview": job.preview})
            if not has_begun:
                import_jobs.discard(job)
            if not options["preview"]:
                raise CommandError("Nothing was imported.")
        elif has_begun or options["yes"] or self.as_json or self._wants_it(job):
            self._import(job, in_background=options["background"])

    def _watch(self, palace: Palace, folder: WatchedFolder, *, is_patient: bool) -> None:
        """
        Args:
            is_patient: Wait while another process watches the folder, then take over.
        """
        name = f"watch for palace {palace.pk} {folder.identity()}"
        with ExitStack() as turn:
            ours = turn.enter_context(held_if_free(name))
            if not (ours or is_patient):
                raise CommandError(
                    f"{folder.path} is being watched already, by another command or by a running "
                    "Loci with LOCI_WATCH_FOLDER. What is put into it is imported."
                )
            stopped = Event()
            self.signals = turn.enter_context(StopSignals())
            self.signals.then(stopped.set)
            if not ours:
                self.stderr.write(f"Another command watches {folder.path}; waiting until it ends.")
            while not ours and not stopped.wait(LOOK_EVERY_S):
                ours = not is_held(name) and turn.enter_context(held_if_free(name))
            if ours:
                self._import_as_they_come(palace, folder, stopped)
        self.stderr.write("Stopped watching.")

    def _import_as_they_come(self, palace: Palace, folder: WatchedFolder, stopped: Event) -> None:
        self.stderr.write("Watching. Ctrl-C stops it; started again, it imports nothing twice.")
        was_there = True
        while not stopped.is_set():
            is_there = folder.path.is_dir()
            if is_there != was_there:
                said = "is back." if is_there else "is gone; waiting for it."
                self.stderr.write(f"{folder.path} {said}")
            was_there = is_there
            complete = folder.complete()
            for refused in folder.newly_refused():
                self.stderr.write(refused)
            for path in complete:
                self._import_watched(palace, path)
                self.stdout.flush()  # For who reads it in a file meanwhile.
                folder.done(path)
                if stopped.is_set():
                    break
            stopped.wait(LOOK_EVERY_S)

    def _import_watched(self, palace: Palace, path: Path) -> None:
        """Import a file, unless this palace has imported it; errors do not stop the others."""
        try:
            if import_jobs.was_imported(palace, path):
                return
            job = self._prepared(palace, path)
            has_begun = job.spool_offset > 0
            if import_jobs.holds_nothing(job) or not (has_begun or job.preview["new"]):
                import_jobs.discard(job)
                self.stderr.write(f"{path} has nothing new.")
                return
            self._show_preview(job)
            self._import(job, in_background=False)
        except (BadImport, CommandError) as error:
            if isinstance(error, CommandError) and error.returncode == INTERRUPTED:
                raise
            self.stderr.write(f"{path} was not imported: {error}")

    def _prepared(self, palace: Palace, file: Path) -> ImportJob:
        try:
            size = file.stat().st_size if file.is_file() else 0
            with tqdm(
                desc="Reading", total=size, unit="B", unit_scale=True, leave=False, disable=None
            ) as bar:
                return import_jobs.preview(
                    palace, file, progress=lambda position: move(bar, position)
                )
        except BadImport as error:
            raise CommandError(str(error)) from error

    def _show_preview(self, job: ImportJob) -> None:
        figures = job.preview
        if self.as_json:
            return
        rows: list[tuple[str, object]] = [
            ("conversations", figures["conversations"]),
            ("  of these empty", figures["empty_conversations"]),
            ("other branches", figures["branches"]),
            ("messages", figures["messages"]),
            ("  new", figures["new"]),
            ("  already here", figures["present"]),
            *((f"  skipped: {reason}", n) for reason, n in figures["skipped"].items()),
            *((f"left out: {what}", n) for what, n in figures["left_out"].items()),
        ]
        always = {"conversations", "messages", "  new"}
        self.stdout.write(f"{job.file_name}: {figures['format']}")
        self._table([row for row in rows if row[1] or row[0] in always])
        if import_jobs.holds_nothing(job):
            self.stdout.write("There is not one message in it, so there is nothing to import.")
        elif import_jobs.is_whole(job):
            with_them = ", ".join(import_jobs.whole_in_words(job))
            self.stdout.write(f"The palace is empty: it becomes as this one was ({with_them}).")
        if figures["first"]:
            self.stdout.write(f"from {figures['first'][:10]} to {figures['last'][:10]}")
        if job.conversations_done:
            self.stdout.write(
                f"{job.conversations_done:,} conversations are filed already; going on from there."
            )

    def _wants_it(self, job: ImportJob) -> bool:
        if not sys.stdin.isatty():
            raise CommandError(
                "Nobody can be asked here, as this is no terminal. Add --yes to import, "
                "or --preview only to look."
            )
        try:
            if input("Import this? [Y/n] ").strip().lower() in {"", "y", "yes"}:
                return True
        except (EOFError, KeyboardInterrupt):
            self.stdout.write("")
        import_jobs.discard(job)
        self.stdout.write("Nothing was imported.")
        return False

    def _import(self, job: ImportJob, *, in_background: bool) -> None:
        import_jobs.start(job)
        if in_background:
            self._queue(job)
            return
        try:
            self._run(job)
        except ImportJob.DoesNotExist as error:
            raise CommandError("The import was discarded meanwhile, in the browser.") from error
        if job.status == ImportJob.Status.FAILED:
            raise CommandError(job.error)
        if job.status == ImportJob.Status.READY:
            raise CommandError(f"Paused in the browser or by another command: {_how_far(job)}")
        tasks.enqueue_post_mining(job.palace_id)
        self._show_receipt(job)

    def _queue(self, job: ImportJob) -> None:
        try:
            import_jobs.import_chats.delay(job.pk)
        except OperationalError:
            self.stdout.write(
                "The queue (Redis) does not answer; within minutes of its return the import goes "
                "on while Loci is running."
            )
        else:
            self.stdout.write("The import is queued; it goes on while Loci is running.")

    def _run(self, job: ImportJob) -> None:
        """Until the job has ended, whether by our hands or by another process's.

        Of several commands with the same file one works; the others wait, and take over if it dies.
        """
        with (
            nullcontext(self.signals) if self.signals else StopSignals() as signals,
            _progress_bar(job) as bar,
            ExitStack() as turn,
        ):
            is_ours = False
            while job.status == ImportJob.Status.RUNNING:
                is_ours = is_ours or turn.enter_context(held_if_free(f"command of import {job.pk}"))
                if signals.is_asked:
                    raise CommandError(_stop(job, is_ours=is_ours), returncode=INTERRUPTED)
                before = job.spool_offset
                if is_ours:
                    self._work(job, signals, bar)
                else:
                    job.refresh_from_db()
                if not import_jobs.is_whole(job):
                    move(bar, accounted_for(job))
                if job.status == ImportJob.Status.RUNNING and job.spool_offset == before:
                    time.sleep(SLICE_S)
        if postings.needs_compaction(job.palace):
            postings.compact(job.palace)

    def _work(self, job: ImportJob, signals: StopSignals, bar: tqdm[Any]) -> None:
        import_jobs.run_slice(
            job,
            seconds=SLICE_S,
            is_interrupted=lambda: signals.is_asked,
            on_progress=lambda progress: show_restore(bar, progress),
        )

    def _show_receipt(self, job: ImportJob) -> None:
        receipt = import_jobs.receipt(job)
        self._show_json({"file": job.file_name, "preview": job.preview, "receipt": receipt})
        if not self.as_json:
            self._show_counts(receipt)
        if not (receipt["stored"] or receipt["present"] or import_jobs.is_whole(job)):
            raise CommandError("Nothing was stored: every message was skipped.")

    def _show_counts(self, receipt: dict[str, Any]) -> None:
        self.stdout.write("")
        self._table(
            [
                ("messages in", receipt["in"]),
                ("= stored", receipt["stored"]),
                ("+ already there", receipt["present"]),
                ("+ skipped", receipt["skipped"]),
                *((f"    {reason}", n) for reason, n in receipt["skipped_why"].items()),
            ]
        )

    def _show_json(self, found: dict[str, Any]) -> None:
        if self.as_json:
            self.stdout.write(json.dumps(found, ensure_ascii=False))

    def _table(self, rows: list[tuple[str, object]]) -> None:
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self.stdout.write(f"{name:<{width}}  {value:>9,}")


def _prepare_installation() -> User | None:
    """On a new machine the import may be the first command of all; the owner if made here."""
    bring_tables_up_to_date()
    with row_access.maintenance():
        return None if get_user_model().objects.exists() else account_of(None)


def _progress_bar(job: ImportJob) -> tqdm[Any]:
    return tqdm(
        desc="Importing",
        total=job.messages_total,
        initial=accounted_for(job),
        unit="message",
        disable=None,
    )


def _stop(job: ImportJob, *, is_ours: bool) -> str:
    """Pause the job if this command works on it; what to say."""
    if not is_ours or import_jobs.is_worked_on(job):
        return "Stopped here; another process goes on with this import."
    import_jobs.pause(job)
    return f"Stopped: {_how_far(job)}"


def _how_far(job: ImportJob) -> str:
    return (
        f"{job.conversations_done:,} of {job.conversations_total:,} conversations are filed. "
        "The same command goes on from there."
    )


def accounted_for(job: ImportJob) -> int:
    receipt = import_jobs.receipt(job)
    return int(receipt["in"] - receipt["waiting"])


def show_restore(bar: tqdm[Any], progress: import_jobs.RestoreProgress) -> None:
    """Show a phase of a restore: each has its own number of rows."""
    if bar.total != progress.total or progress.done < bar.n:
        bar.reset(progress.total)
        bar.unit = "row"
    bar.set_description_str(progress.title, refresh=False)
    move(bar, progress.done)


def move(bar: tqdm[Any], position: int) -> None:
    bar.update(position - bar.n)

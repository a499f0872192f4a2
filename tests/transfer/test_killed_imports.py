"""Killed without warning, or run by several at once: each message ends in one drawer."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from django.conf import settings
from django.db import connection

from palace.models import Drawer, ImportJob, Palace
from palace.transfer import import_jobs
from palace.transfer.spools import spool_path
from tests.transfer.importers.exports import plain, write_lines
from tests.transfer.processes import environment

pytestmark = pytest.mark.django_db(transaction=True)

CONVERSATIONS, MESSAGES = 60, 6
RUN = """
import sys
import django
django.setup()
from isolation import row_access
row_access.allow_all_by_default()
from palace.transfer import import_jobs
from palace.models import ImportJob
import_jobs.run_slice(ImportJob.objects.get(pk=int(sys.argv[1])), seconds=600)
"""


@pytest.fixture
def job(palace, tmp_path):
    lines = [
        plain(*[f"Message {m} of {n}: the ferry to Split leaves at {m}." for m in range(MESSAGES)],
              conversation_id=f"p{n}")
        for n in range(CONVERSATIONS)
    ]  # fmt: skip
    job = import_jobs.preview(palace, write_lines(tmp_path / "a.jsonl", lines))
    import_jobs.start(job)
    return job


def start_worker(job):
    """A process of its own on the test's database, amid the import when this returns."""
    before = job.conversations_done
    worker = subprocess.Popen(
        [sys.executable, "-c", RUN, str(job.pk)], env=environment(), cwd=settings.BASE_DIR
    )
    deadline = time.monotonic() + 60
    while job.conversations_done == before and time.monotonic() < deadline:
        time.sleep(0.01)
        job.refresh_from_db()
    return worker


def finish(job):
    """The killed worker's lock lives until the server has noticed that it is gone."""
    deadline = time.monotonic() + 60
    while job.status in ImportJob.UNFINISHED and time.monotonic() < deadline:
        if import_jobs.run_slice(job):
            time.sleep(0.05)
    return import_jobs.receipt(job)


def check_whole(palace, receipt):
    total = CONVERSATIONS * MESSAGES
    assert receipt["status"] == ImportJob.Status.DONE
    assert (receipt["in"], receipt["stored"]) == (total, total)
    assert (receipt["present"], receipt["skipped"], receipt["waiting"]) == (0, 0, 0)
    drawers = Drawer.objects.filter(palace=palace)
    assert len(set(drawers.values_list("conversation", "external_id"))) == total
    assert drawers.count() == total
    assert not drawers.unmined().exists()


@pytest.mark.exhaustive
def test_killed_three_times_at_random_moments_nothing_is_lost_or_counted_twice(palace, job):
    moment = random.Random(7)  # noqa: S311 - a moment to kill at, not a secret.
    for _ in range(3):
        worker = start_worker(job)
        time.sleep(moment.uniform(0, 0.2))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        job.refresh_from_db()
        assert 0 < job.conversations_done < CONVERSATIONS
        receipt = import_jobs.receipt(job)
        assert receipt["stored"] == Drawer.objects.filter(palace=palace).count()
    check_whole(palace, finish(job))


def test_three_workers_on_one_job_do_it_once(palace, job):
    def work():
        own = ImportJob.objects.get(pk=job.pk)
        finish(own)
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    job.refresh_from_db()
    check_whole(palace, import_jobs.receipt(job))


def in_thread(job, run):
    """Have it run beside the test, which goes on when the first conversation is filed."""

    def work():
        run(ImportJob.objects.get(pk=job.pk))
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    deadline = time.monotonic() + 60
    while not job.conversations_done and time.monotonic() < deadline:
        job.refresh_from_db()
    return worker


@pytest.mark.exhaustive
def test_paused_it_stops_at_the_next_conversation_with_all_mined_that_was_filed(palace, job):
    ended = []
    worker = in_thread(job, lambda own: ended.append(import_jobs.run_slice(own, seconds=600)))
    assert import_jobs.is_worked_on(job)
    assert import_jobs.pause(job)
    assert not import_jobs.pause(job)
    worker.join()
    job.refresh_from_db()
    assert ended == [True]
    assert job.status == ImportJob.Status.READY
    assert 0 < job.conversations_done < CONVERSATIONS
    assert not import_jobs.is_worked_on(job)
    assert Drawer.objects.filter(palace=palace).count() == job.messages_stored
    assert not Drawer.objects.unmined().exists()
    assert import_jobs.start(job)
    assert not import_jobs.start(job)
    check_whole(palace, finish(job))


def test_discarded_while_its_task_still_mines_it_ends_and_keeps_what_it_has_filed(palace, job):
    worker = in_thread(job, lambda own: import_jobs.import_chats(own.pk))
    assert not import_jobs.discard(job)
    assert import_jobs.pause(job)
    assert import_jobs.discard(job)
    worker.join()
    assert not ImportJob.objects.exists()
    assert not spool_path(job).exists()
    assert 0 < Drawer.objects.filter(palace=palace).count() < CONVERSATIONS * MESSAGES
    assert not Drawer.objects.unmined().exists()


def test_two_previews_of_one_file_at_once_make_one_job(palace, tmp_path):
    path = write_lines(tmp_path / "b.jsonl", [plain("Q") for _ in range(200)])
    found = []

    def look():
        found.append(import_jobs.preview(Palace.objects.get(pk=palace.pk), path).pk)
        connection.close()

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()
    assert len(found) == 3
    assert set(found) == {ImportJob.objects.get().pk}

"""A worker that is killed, again and again, loses nothing and does nothing twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from celery import signals
from celery.exceptions import TimeLimitExceeded
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from bench.model_server import Status
from bench.synthetic_palace import conversations
from config.tasks import take_up_unfinished
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining import tasks
from palace.mining.pipeline import mine_many
from palace.models import Drawer, ImportJob, Palace, Passage, Posting, Room, Wing
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing import postings
from palace.storage.indexing.rebuild import reembed
from palace.storage.transcript_filing import file_transcript
from palace.transfer.export import stream
from palace.transfer.import_jobs import import_chats, preview, receipt, start
from palace.transfer.importers.loci import FILES
from settings_app import task_queue
from tests.conversations import BATTERY
from tests.hypothesis_profiles import is_thorough
from tests.polling import until, wait_until
from tests.transfer.palaces import lines_of

# As many as there is time for: `make test-all` has more.
MESSAGES, KILLS = (500, 10) if is_thorough() else (200, 2)
FINISH_TIMEOUT_S = 240
OFFER_AGAIN_S = 5
# Longer than a busy machine needs to load the models in a new process.
HANGS_AFTER_S = 10


@pytest.fixture
def palace(transactional_db):
    return Palace.objects.own(get_user_model().objects.create_user("alice"))


def empty_broker():
    """A killed worker leaves what it had in hand in the queue, where later tests would find it."""
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        broker.delete("celery", "bulk", "unacked", "unacked_index")


@pytest.fixture
def spawn():
    """Start real programs on the test's database; each in a process group of its own."""
    empty_broker()
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": "postgresql://postgres@{}/{}".format(
            quote(str(settings.EMBEDDED.sockets), safe=""), connection.settings_dict["NAME"]
        ),
        "REDIS_URL": settings.REDIS_URL,
        "LOCI_SECRET_KEY": settings.SECRET_KEY,
        "LOCI_TAKE_UP_AFTER_S": "0",
    }
    programs = []

    def start(*command, output=subprocess.DEVNULL, **more):
        program = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environment | more,
            cwd=settings.BASE_DIR,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        programs.append(program)
        return program

    yield start
    for program in programs:
        kill(program)
    empty_broker()


@pytest.fixture
def spawn_worker(spawn):
    command = ["celery", "-A", "config", "worker", "--concurrency", "2"]
    return lambda *arguments, **more: spawn(*command, *arguments, **more)


def kill(program):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def export_file(path):
    """Messages of made-up talk, as plain JSON Lines."""
    with path.open("w", encoding="utf-8") as lines:
        for talk in conversations(MESSAGES):
            messages = [
                {"role": t.role, "text": t.text, "said_at": t.said_at.isoformat()}
                for t in talk.turns
            ]
            lines.write(json.dumps({"id": talk.external_id, "messages": messages}) + "\n")
    return path


def steps_done():
    """Each message takes two: to be filed, and to be mined."""
    return Drawer.objects.count() + Drawer.objects.exclude(mined_at=None).count()


def offer_work_until(condition):
    """Again and again, as the schedule does: a killed worker may still hold its locks."""
    take_up_unfinished.delay()
    while not wait_until(condition, OFFER_AGAIN_S):
        take_up_unfinished.delay()


@pytest.mark.lengthy
def test_killed_again_and_again_it_still_files_every_message_once(palace, spawn_worker, tmp_path):
    job = preview(palace, export_file(tmp_path / "talk.jsonl"))
    start(job)
    draw = random.Random()  # noqa: S311 - moments to kill at, no secret.
    amid = 0
    for _ in range(KILLS):
        worker = spawn_worker()
        # By what is done, not by the clock: a fast machine must not be done before the last kill.
        enough = min(steps_done() + draw.randint(1, MESSAGES // KILLS), 2 * MESSAGES)
        offer_work_until(lambda enough=enough: steps_done() >= enough)
        time.sleep(draw.uniform(0, 0.02))
        kill(worker)
        job.refresh_from_db()
        amid += job.status == ImportJob.Status.RUNNING
    assert amid >= KILLS // 2, "Most kills came too late to prove anything."

    spawn_worker()

    def is_finished():
        take_up_unfinished.delay()
        job.refresh_from_db()
        return job.status == ImportJob.Status.DONE and not Drawer.objects.unmined().exists()

    assert wait_until(is_finished, FINISH_TIMEOUT_S, every_s=1)

    said = receipt(job)
    assert (said["in"], said["stored"], said["present"], said["waiting"]) == (
        MESSAGES,
        MESSAGES,
        0,
        0,
    )
    drawers = list(Drawer.objects.within(palace).select_related("room__wing"))
    wanted = {
        (talk.external_id, turn.external_id, turn.text)
        for talk in conversations(MESSAGES)
        for turn in talk.turns
    }
    assert {(d.conversation, d.external_id, d.text) for d in drawers} == wanted
    assert len(drawers) == MESSAGES
    assert all(d.closet_id and d.mined_at for d in drawers)
    assert all(d.room.wing.number != Wing.UNSORTED for d in drawers)
    assert Room.objects.within(palace).count() == len({d.conversation for d in drawers})
    assert Passage.objects.filter(palace=palace, embedding=None).count() == 0
    assert Passage.objects.filter(palace=palace).values("drawer").distinct().count() == MESSAGES
    posted = [key for p in Posting.objects.filter(term=postings.EVERY) for key in p.drawers]
    assert sorted(posted) == sorted(d.pk for d in drawers)
    assert recall(palace, RecallRequest("Who wants to borrow money for the piano?")).hits


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_killed_while_it_puts_a_palace_back_it_is_as_it_was(palace, spawn_worker, tmp_path):
    there = Palace.objects.own(get_user_model().objects.create_user("bob"))
    mine_many(there, conversations(MESSAGES))
    learn_unread(there)
    write_due_episodes(there)
    path = tmp_path / "palace.zip"
    path.write_bytes(b"".join(stream(there)))
    job = preview(palace, path)
    start(job)
    here = Drawer.objects.within(palace)
    draw = random.Random()  # noqa: S311 - moments to kill at, no secret.
    for enough in (1, MESSAGES // 3):
        worker = spawn_worker()
        offer_work_until(lambda enough=enough: here.exclude(mined_at=None).count() >= enough)
        time.sleep(draw.uniform(0, 0.02))
        kill(worker)

    spawn_worker()
    offer_work_until(lambda: ImportJob.objects.get(pk=job.pk).status == ImportJob.Status.DONE)
    # Rooms whose locks the killed worker still held are left to the schedule.
    offer_work_until(lambda: not here.unmined().exists())
    again = tmp_path / "again.zip"
    again.write_bytes(b"".join(stream(palace)))
    assert len(lines_of(path, "facts")) > 0
    for name in FILES:
        before, after = lines_of(path, name), lines_of(again, name)
        assert after[: len(before)] == before, name
    assert Passage.objects.filter(palace=palace).values("drawer").distinct().count() == MESSAGES
    everywhere = Posting.objects.filter(palace=palace, term=postings.EVERY)
    posted = [key for posting in everywhere for key in posting.drawers]
    assert sorted(posted) == sorted(here.values_list("pk", flat=True))


def children_of(worker):
    names = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
    return [int(name) for name in names.split()]


@pytest.mark.lengthy
def test_a_task_that_hangs_is_ended_and_its_work_is_done_by_the_next_process(
    palace, spawn_worker, model_server
):
    """A stopped process hangs as one does that waits in C: no signal but the last one ends it."""
    stopped = []

    def stop_the_first(request):
        if not stopped:
            stopped.extend(children_of(worker))
            for child in stopped:
                os.kill(child, signal.SIGSTOP)
        return Status(400, "No such model.")

    model_server.answer(stop_the_first)
    worker = spawn_worker(
        "--concurrency",
        "1",
        LOCI_LLM_PROVIDER=model_server.base_url,
        LOCI_LLM_MODEL="small",
        LOCI_LLM_API_KEY="key",
        LOCI_TASK_LIMIT_S=str(HANGS_AFTER_S),
    )
    file_transcript(palace, BATTERY)
    # A task takes the limit of its sender along: the worker itself queues it.
    offer_work_until(lambda: stopped)
    until(lambda: not set(stopped) & set(children_of(worker)))
    offer_work_until(lambda: not Drawer.objects.unmined().exists())
    assert worker.poll() is None


def test_at_its_limit_a_task_is_queued_again_unless_its_work_is_found_anyway(queued):
    for task in (reembed, tasks.mine_room):
        signals.task_failure.send(sender=task, exception=TimeLimitExceeded(3), args=[1], kwargs={})
        signals.task_failure.send(sender=task, exception=ValueError(), args=[1], kwargs={})
    assert queued() == ["reembed"]


@pytest.mark.exhaustive
def test_a_room_that_kills_its_process_is_not_tried_again_at_once(
    palace, spawn_worker, model_server
):
    """As one would that needs more memory than there is."""

    def kill_children(request):
        for child in children_of(worker):
            os.kill(child, signal.SIGKILL)
        return "Too late."

    model_server.answer(kill_children)
    worker = spawn_worker(
        LOCI_LLM_PROVIDER=model_server.base_url, LOCI_LLM_MODEL="small", LOCI_LLM_API_KEY="key"
    )
    tasks.mine_room.delay(file_transcript(palace, BATTERY).room.pk)
    until(lambda: model_server.requests)
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        # Given up: neither queued nor in a worker's hands.
        until(lambda: not broker.exists("celery", "bulk", "unacked"))
    assert len(model_server.requests) == 1


@pytest.mark.exhaustive
def test_a_long_import_does_not_keep_somebody_elses_message_waiting(palace, spawn_worker, tmp_path):
    """As `manage.py run` starts it, one worker takes short tasks alone."""
    job = preview(palace, export_file(tmp_path / "talk.jsonl"))
    start(job)
    import_chats.delay(job.pk, 0)
    bob = Palace.objects.own(get_user_model().objects.create_user("bob"))
    room = file_transcript(bob, BATTERY).room
    tasks.mine_room.delay(room.pk)
    spawn_worker("--queues", task_queue.QUEUE)
    until(lambda: not Drawer.objects.within(bob).unmined().exists())
    job.refresh_from_db()
    assert (job.status, job.conversations_done) == (ImportJob.Status.RUNNING, 0)
    spawn_worker()
    offer_work_until(lambda: ImportJob.objects.get(pk=job.pk).status == ImportJob.Status.DONE)

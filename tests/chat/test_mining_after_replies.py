"""After the reply: what was said becomes drawers, once, whatever happens in between."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat import tasks
from chat.mining_queue import keep_waiting, remember, remember_if_due
from chat.models import Agent, Conversation, Message
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Activity, Drawer, Room
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing.postings import SMALL_SEGMENTS
from tests.chat.conftest import current, finished, let_threads_end, rest, say, start

ODD = "  My badge says “K-77”\r\nand\ttabs stay. 🏛️ \n\n"


def test_what_was_said_is_kept_to_the_byte(palace, model):
    model.answer("  Noted: *K-77*.\n\n")
    conversation = start(palace, ODD)
    finished(conversation)
    rest(conversation)
    drawers = Drawer.objects.filter(palace=palace).in_order()
    assert [(d.source, d.role, d.text) for d in drawers] == [
        ("chat", "user", ODD),
        ("chat", "assistant", "  Noted: *K-77*.\n\n"),
    ]
    assert [d.external_id for d in drawers] == [str(m.uuid) for m in current(conversation)]
    assert {d.conversation for d in drawers} == {str(conversation.uuid)}
    assert Activity.objects.get(palace=palace).kind == Activity.Kind.MEMORY_MINED
    assert recall(palace, RecallRequest("What does my badge say?")).hits[0].drawer.text == ODD


@pytest.mark.parametrize(
    "text",
    [
        "What is <memory_context> for, and </memory_context>?",
        "<memory_context>\nMy own notes.\n</memory_context>",
        "\u202eright to left\u202c \x1b[31m \u2028 \ufeff end",
        "x" * 200_000,
    ],
)
def test_ones_own_words_stay_whatever_they_look_like(palace, model, text):
    conversation = start(palace, text)
    finished(conversation)
    rest(conversation)
    assert Drawer.objects.get(role="user").text == text


def test_the_same_words_said_twice_are_two_drawers_in_order(palace, model):
    conversation = start(palace, "Yes.")
    finished(conversation)
    say(conversation, "Yes.")
    finished(conversation)
    # Times may tie; the order does not depend on them.
    Message.objects.update(said_at=timezone.now())
    rest(conversation)
    drawers = Drawer.objects.in_order()
    assert [drawer.text for drawer in drawers] == ["Yes.", "OK.", "Yes.", "OK."]
    assert [drawer.external_id for drawer in drawers] == [
        str(m.uuid) for m in current(conversation)
    ]


def test_an_agent_renamed_and_deleted_in_between_keeps_the_room(palace, model):
    agent = Agent.objects.create(palace=palace, name="Coach")
    conversation = start(palace, "One", agent=agent)
    finished(conversation)
    rest(conversation)
    Agent.objects.update(name="Trainer")
    conversation = Conversation.objects.get(pk=conversation.pk)
    say(conversation, "Two")
    finished(conversation)
    rest(conversation)
    agent.delete()
    conversation = Conversation.objects.get(pk=conversation.pk)
    say(conversation, "Three")
    finished(conversation)
    rest(conversation)
    speakers = Drawer.objects.filter(role="assistant").in_order()
    assert [drawer.speaker for drawer in speakers] == ["Coach", "Trainer", ""]
    assert Drawer.objects.values("room").distinct().count() == 1


def test_a_conversation_is_due_once_it_has_rested(palace, model, settings):
    settings.MINE_AFTER_S = 20
    conversation = start(palace, "Hello")
    finished(conversation)
    conversation.refresh_from_db()
    assert 10 < (conversation.mine_due_at - timezone.now()).total_seconds() <= 20
    remember_if_due(conversation, timezone.now())
    assert not Drawer.objects.exists()
    assert rest(conversation).mine_due_at is None
    assert Drawer.objects.count() == 2


def test_a_windows_worth_is_due_at_once(palace, model):
    conversation = start(palace, "One")
    finished(conversation)
    for text in ("Two", "Three", "Four", "Five"):
        say(conversation, text)
        finished(conversation)
    conversation.refresh_from_db()
    assert conversation.mine_due_at <= timezone.now()
    tasks.mine_conversation(conversation.pk)
    assert Drawer.objects.count() == 10


def test_what_comes_later_is_added_to_the_same_room(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    rest(conversation)
    say(conversation, "Again")
    finished(conversation)
    rest(conversation)
    drawers = Drawer.objects.filter(palace=palace).in_order()
    assert [drawer.text for drawer in drawers] == ["Hello", "OK.", "Again", "OK."]
    assert drawers.values("room").distinct().count() == 1


def test_the_title_becomes_the_rooms_unless_it_was_renamed(palace, model):
    words = "hm, so my sourdough starter does not rise any more, what could be wrong with it?"
    named, renamed = start(palace, words), start(palace, words)
    Conversation.objects.filter(pk=renamed.pk).update(title="Bread")
    for conversation in (named, renamed):
        finished(conversation)
        rest(conversation)
    titles = {room.external_id: room.title for room in Room.objects.within(palace)}
    assert "sourdough" in titles[str(named.uuid)].lower()
    named.refresh_from_db()
    renamed.refresh_from_db()
    assert named.title == titles[str(named.uuid)] != words[: len(named.title)]
    assert renamed.title == "Bread"


def test_quotes_from_the_palace_do_not_become_memories(furnished):
    before = Drawer.objects.within(furnished).count()
    conversation = start(furnished, "Where does Nora work?")
    finished(conversation)
    rest(conversation)
    assert Drawer.objects.within(furnished).count() == before + 1
    assert Drawer.objects.get(source="chat").role == "user"


def test_by_hand_nothing_is_mined_until_asked(palace, model, choices):
    choices(auto_mine=False)
    conversation = start(palace, "Hello")
    finished(conversation)
    conversation.refresh_from_db()
    assert conversation.mine_due_at is None
    assert not Drawer.objects.exists()
    assert remember(conversation) == 2
    assert Drawer.objects.count() == 2
    assert remember(conversation) == 0


def test_memory_that_is_off_mines_nothing(palace, model, choices):
    conversation = start(palace, "Hello")
    finished(conversation)
    choices(enabled=False)
    assert rest(conversation).mine_due_at is None
    assert not Drawer.objects.exists()


def test_an_agent_without_memories_is_mined_all_the_same(palace, model):
    agent = Agent.objects.create(palace=palace, name="Orchestrator", recalls=False)
    conversation = start(palace, "Hello", agent=agent)
    finished(conversation)
    rest(conversation)
    assert Drawer.objects.count() == 2
    assert Drawer.objects.get(role="assistant").speaker == "Orchestrator"


def test_mining_that_was_killed_is_repeated_without_doubles(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    remember(conversation)
    # Killed after filing: the messages were not marked yet.
    Message.objects.update(mined_at=None)
    Conversation.objects.update(mine_due_at=timezone.now())
    rest(conversation)
    assert Drawer.objects.count() == 2
    assert not Message.objects.filter(mined_at=None).exists()


def test_what_was_purged_does_not_come_back(palace, model):
    conversation = start(palace, "My old password hint")
    finished(conversation)
    rest(conversation)
    Drawer.objects.filter(role="user").delete()
    say(conversation, "Something else")
    finished(conversation)
    rest(conversation)
    texts = set(Drawer.objects.values_list("text", flat=True))
    assert texts == {"OK.", "Something else"}


def test_who_deletes_a_conversation_waits_for_its_mining_or_forestalls_it(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    outcomes = []

    def keep():
        try:
            keep_waiting(Conversation.objects.get(pk=conversation.pk))
        except Conversation.DoesNotExist:
            outcomes.append("gone")
        finally:
            connection.close()

    with transaction.atomic():
        palace.lock()
        thread = threading.Thread(target=keep)
        thread.start()
        thread.join(0.3)
        conversation.delete()
    thread.join()
    assert outcomes == ["gone"]
    assert not Drawer.objects.exists()


@pytest.mark.exhaustive
def test_many_small_minings_are_tidied_up(palace, model, queued):
    conversation = start(palace, "Hello")
    finished(conversation)
    for number in range(SMALL_SEGMENTS + 1):
        turn = Turn("1", "user", f"Number {number}.", timezone.now())
        mine(palace, Transcript("plain", str(number), "Small", (turn,)))
    let_threads_end()
    Conversation.objects.update(mine_due_at=timezone.now())
    tasks.mine_conversation(conversation.pk)
    assert queued()[-1] == "compact_postings"


def test_the_sweep_queues_what_nobody_mined(palace, model, settings, queued):
    settings.TAKE_UP_AFTER_S = 0
    conversation = start(palace, "Hello")
    finished(conversation)
    let_threads_end()  # That one queues it as well.
    Conversation.objects.update(mine_due_at=timezone.now())
    waiting = len(queued())
    tasks.take_up_conversations()
    assert queued()[waiting:] == ["mine_conversation"]


def test_a_clock_that_was_ahead_delays_nothing(palace, model, queued):
    conversation = start(palace, "Hello")
    finished(conversation)
    let_threads_end()
    waiting = len(queued())
    tasks.take_up_conversations()
    assert queued()[waiting:] == [], "It rests."
    Conversation.objects.update(mine_due_at=timezone.now() + timedelta(hours=2))
    tasks.take_up_conversations()
    assert queued()[waiting:] == ["mine_conversation"]
    tasks.mine_conversation(conversation.pk)
    assert not Message.objects.filter(conversation=conversation).unmined().exists()


def test_the_sweep_ends_replies_that_nobody_writes(palace, model, gone_writer):
    conversation = start(palace, "Hello")
    finished(conversation)
    Message.objects.filter(role="assistant").update(status="writing", writer=gone_writer)
    tasks.take_up_conversations()
    assert current(conversation).last().status == "failed"


def test_a_deleted_conversation_is_no_error(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    key = conversation.pk
    conversation.delete()
    tasks.mine_conversation(key)
    assert not Message.objects.exists()


@pytest.mark.parametrize("status", ["done", "stopped"])
def test_a_stopped_reply_was_said_too(palace, model, status):
    conversation = start(palace, "Hello")
    finished(conversation)
    Message.objects.filter(role="assistant").update(status=status)
    assert remember(conversation) == 2


def test_a_reply_that_broke_off_was_not_said(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    Message.objects.filter(role="assistant").update(status="failed")
    assert remember(conversation) == 1

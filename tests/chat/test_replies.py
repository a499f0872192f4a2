"""A message and its reply: recall before, the model, and every way it can end."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime

import pytest
from django.db import connection

from chat import live_reply, replies
from chat.mining_queue import remember
from chat.models import Agent, Conversation, Message
from chat.replies import BadText, NothingToRetry, StillWriting
from chat.reply_writer import OFF_FOR_AGENT, OFF_IN_SETTINGS
from chat.views.message_rows import row, stretch
from language.transcripts import Transcript, Turn
from llm.models import Usage
from palace.mining.pipeline import mine
from palace.models import Drawer, RecollectionTrace
from tests.chat.conftest import current, finished, let_threads_end, say, start
from tests.model_server import CutOff, NotJson, Slow, Stalled, Status, Text
from tests.polling import until

QUESTION = "Where does my sister Nora work?"


def test_a_reply_is_given_what_was_remembered(furnished, model):
    model.answer("At the aquarium in Lisbon.")
    reply = finished(start(furnished, QUESTION))

    assert (reply.text, reply.status) == ("At the aquarium in Lisbon.", "done")
    assert "test-model" in reply.model
    system, asked = model.requests[-1].body["messages"]
    assert system["content"].startswith("<memory_context>")
    assert "works at the aquarium" in system["content"]
    assert asked == {"role": "user", "content": QUESTION}
    trace = RecollectionTrace.objects.get(palace=furnished, uuid=reply.recollection)
    assert trace.query == QUESTION
    assert trace.context in system["content"]
    assert len(trace.hits) <= 5


def test_without_memories_the_block_is_left_out(palace, model):
    finished(start(palace, QUESTION))
    assert "memory_context" not in model.requests[-1].body["messages"][0]["content"]


def test_instructions_come_after_the_memories(furnished, model):
    agent = Agent.objects.create(palace=furnished, name="Coach", instructions="Be brief.  \n")
    finished(start(furnished, QUESTION, agent=agent))
    system = model.requests[-1].body["messages"][0]["content"]
    assert system.endswith("Be brief.  \n")
    assert system.index("</memory_context>") < system.index("You are Coach.")


def test_an_agents_own_model_is_asked(palace, model):
    agent = Agent.objects.create(palace=palace, name="Coach", model="another-model")
    finished(start(palace, QUESTION, agent=agent))
    assert model.requests[-1].body["model"] == "another-model"


def test_the_model_reads_the_conversation_so_far(palace, model):
    model.script(["One.", "Two."])
    conversation = start(palace, "First")
    finished(conversation)
    say(conversation, "Second")
    finished(conversation)
    said = [message["content"] for message in model.requests[-1].body["messages"][1:]]
    assert said == ["First", "One.", "Second"]


@pytest.mark.parametrize("text", ["", " \n\t", "x" * (replies.LONGEST_TEXT + 1), "a\0b", "\ud800"])
def test_what_cannot_be_kept_is_not_said(palace, text):
    with pytest.raises(BadText):
        start(palace, text)
    assert not Conversation.objects.exists()


def test_a_form_sent_twice_says_it_once(palace, model):
    key = uuid.uuid4()
    first = start(palace, "Hello", key=key)
    finished(first)
    assert start(palace, "Hello", key=key) == first
    key = uuid.uuid4()
    reply = say(first, "More", key=key)
    finished(first)
    assert say(first, "More", key=key) == reply
    assert [message.text for message in current(first)] == ["Hello", "OK.", "More", "OK."]


def test_one_reply_is_written_at_a_time(palace, model):
    model.answer(Slow(30))
    conversation = start(palace, "Hello")
    with pytest.raises(StillWriting):
        say(conversation, "And?")
    reply = current(conversation).last()
    with pytest.raises(StillWriting):
        replies.retry(conversation, reply.uuid)
    live_reply.stop(reply)
    model.stopped.set()


def test_of_two_tabs_one_gets_through(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    model.answer(Text("A long story. " * 10, pause_s=0.02))
    outcomes = []

    def speak(text):
        try:
            say(conversation, text)
            outcomes.append("said")
        except StillWriting:
            outcomes.append("refused")
        finally:
            connection.close()

    tabs = [threading.Thread(target=speak, args=[text]) for text in ("one", "two")]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    finished(conversation)
    assert sorted(outcomes) == ["refused", "said"]
    assert [message.position for message in current(conversation)] == [0, 1, 2, 3]


def test_another_try_takes_the_place_of_the_last(palace, model):
    model.script(["Badly.", "Well.", "Third."])
    conversation = start(palace, "How did it go?")
    badly = finished(conversation)
    replies.retry(conversation, badly.uuid)
    well = finished(conversation)
    assert well.text == "Well."
    assert Message.objects.exclude(replaced_at=None).get().text == "Badly."
    assert row(conversation, well).tries == 1
    say(conversation, "Good.")
    assert row(conversation, finished(conversation)).tries == 0
    assert [each.tries for each in stretch(conversation).rows] == [0, 1, 0, 0]
    said = [message["content"] for message in model.requests[-1].body["messages"][1:]]
    assert said == ["How did it go?", "Well.", "Good."]


def test_there_must_be_something_to_retry(palace):
    empty = Conversation.objects.create(palace=palace, title="", spoke_at="2025-01-01T00:00Z")
    with pytest.raises(NothingToRetry):
        replies.retry(empty, uuid.uuid4())


def test_a_reply_is_stopped_as_far_as_it_came(palace, model):
    model.answer(Text("word " * 400, pause_s=0.02))
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    while len(live_reply.text_so_far(reply.uuid)) < 20:
        time.sleep(0.01)
    # The writer, which hears of it first at times, may have ended it already.
    live_reply.stop(reply)
    stopped = finished(conversation)
    assert stopped.status == "stopped"
    assert 20 <= len(stopped.text) < 1500
    assert not live_reply.stop(stopped)
    let_threads_end()
    assert Usage.objects.get(purpose="chat").outcome == "cancelled"
    stopped.refresh_from_db()
    assert stopped.status == "stopped"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Status(401, code="invalid_api_key"), "key"),
        (Status(404, code="model_not_found"), "model"),
        (Status(500), "try again"),
        (NotJson(), "stopped in the middle"),
        (CutOff(text="a"), "could not be reached"),
    ],
)
def test_a_model_that_fails_leaves_quotes_and_a_reason(furnished, model, settings, failure, reason):
    settings.LLM_MAX_RETRIES = 0
    model.answer(failure)
    reply = finished(start(furnished, QUESTION))
    assert reply.status == "failed"
    assert reason in reply.note
    if reply.text != "a":
        assert "works at the aquarium" in reply.text
        assert "§ W-" in reply.text
        assert not reply.mine


def test_a_stream_that_breaks_off_keeps_what_came(furnished, model, settings):
    settings.LLM_MAX_RETRIES = 0
    model.answer(CutOff("Half of this never arrives, whatever one does.", cleanly=True))
    reply = finished(start(furnished, QUESTION))
    assert reply.status == "failed"
    assert reply.text.startswith("Half of")
    assert "stopped in the middle" in reply.note


def test_an_agent_without_memories_is_given_none(furnished, model):
    agent = Agent.objects.create(palace=furnished, name="Orchestrator", recalls=False)
    reply = finished(start(furnished, QUESTION, agent=agent))
    assert "memory_context" not in model.requests[-1].prompt
    assert (reply.recollection, reply.note) == (None, OFF_FOR_AGENT)
    assert not RecollectionTrace.objects.exists()


def test_memory_that_is_off_recalls_nothing(furnished, model, choices):
    choices(enabled=False)
    reply = finished(start(furnished, QUESTION))
    assert "memory_context" not in model.requests[-1].prompt
    assert (reply.recollection, reply.note) == (None, OFF_IN_SETTINGS)


def test_as_many_drawers_as_the_settings_say(furnished, model, choices):
    choices(top_k=2)
    reply = finished(start(furnished, QUESTION))
    assert len(RecollectionTrace.objects.get(uuid=reply.recollection).hits) == 2


def test_a_key_that_cannot_be_read_is_a_note(furnished, choices):
    chosen = choices(provider="openai", model="gpt-4o-mini")
    chosen.sealed_key = "gibberish"
    chosen.save()
    reply = finished(start(furnished, QUESTION))
    assert "can no longer be read" in reply.note
    assert "works at the aquarium" in reply.text


def test_a_reply_whose_writer_is_gone_is_ended_with_what_there_is(palace, model, gone_writer):
    model.answer(Slow(30))
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    live_reply.publish_text(reply.uuid, "So far ", 0)
    assert not live_reply.end_if_abandoned(reply)
    reply.writer = gone_writer
    assert live_reply.end_if_abandoned(reply)
    ended = finished(conversation)
    assert (ended.status, ended.text) == ("failed", "So far ")
    assert "stopped while" in ended.note
    model.stopped.set()


def test_half_a_reply_is_stored_and_outlives_its_writer_and_redis(palace, model, gone_writer):
    model.answer(Text("Half of it, and then a long silence", pause_s=30))
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    until(lambda: current(conversation).last().text)
    stored = current(conversation).last().text
    assert "Half of it, and then a long silence".startswith(stored)
    live_reply.delete_entries(reply.uuid)
    reply.writer = gone_writer
    assert live_reply.end_if_abandoned(reply)
    ended = finished(conversation)
    assert (ended.status, ended.text) == ("failed", stored)
    model.stopped.set()


def test_what_was_streamed_is_stored_though_the_model_falls_silent(palace, model, gone_writer):
    words = "All of these words come at once, and then nothing."
    model.answer(Stalled(words))
    conversation = start(palace, "Hello")
    until(lambda: current(conversation).last().text == words)
    reply = current(conversation).last()
    assert reply.is_writing
    # Its process is killed, and Redis forgets it.
    live_reply.delete_entries(reply.uuid)
    reply.writer = gone_writer
    assert live_reply.end_if_abandoned(reply)
    ended = finished(conversation)
    assert (ended.status, ended.text) == ("failed", words)
    model.stopped.set()


def test_what_the_model_reads_anyway_is_not_recalled(furnished, model):
    conversation = start(furnished, "Nora likes octopuses most of all.")
    finished(conversation)
    remember(conversation)
    say(conversation, "What does Nora like most of all?")
    reply = finished(conversation)
    trace = RecollectionTrace.objects.get(uuid=reply.recollection)
    assert "octopuses" not in trace.context
    assert "already in the conversation" in {cut["cut"] for cut in trace.cut()}
    other = start(furnished, "What does Nora like most of all?")
    reply = finished(other)
    assert "octopuses" in RecollectionTrace.objects.get(uuid=reply.recollection).context


def test_the_same_question_asked_before_is_no_answer(furnished, model):
    first = start(furnished, QUESTION)
    finished(first)
    remember(first)
    reply = finished(start(furnished, QUESTION))
    trace = RecollectionTrace.objects.get(uuid=reply.recollection)
    hits, cuts = trace.hits, {cut["cut"] for cut in trace.cut()}
    assert "the same question, asked before" in cuts
    assert "already in the conversation" not in cuts
    found = Drawer.objects.filter(uuid__in=[hit["drawer"] for hit in hits])
    assert QUESTION not in {drawer.text for drawer in found}
    assert "works at the aquarium" in found.get(uuid=hits[0]["drawer"]).text


def test_times_are_the_readers_own(palace, model, choices):
    choices(time_zone="Pacific/Auckland")
    turn = Turn("1", "user", "The ferry left.", datetime(2025, 6, 1, 13, tzinfo=UTC))
    mine(palace, Transcript("plain", "ferry", "Ferry", (turn,)))
    finished(start(palace, "When did the ferry leave?"))
    system = model.requests[-1].body["messages"][0]["content"]
    assert "Mon 02 Jun 2025, 01:00" in system
    assert "(NZ" in system
    choices(provider="none")
    quoted = finished(start(palace, "When did that ferry leave?"))
    assert "2 June 2025" in quoted.text


def test_costs_are_metered_for_the_owner(furnished, model, alice):
    finished(start(furnished, QUESTION))
    chat = Usage.objects.get(purpose="chat")
    assert (chat.owner, chat.tokens_in, chat.tokens_out, chat.outcome) == (alice, 11, 7, "ok")
    assert Usage.objects.filter(purpose="memory_embed", owner=alice).exists()

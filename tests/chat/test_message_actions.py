"""Remember, forget, search and copy messages, and correct what was learnt from them."""

from __future__ import annotations

import re
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from chat.message_memory import State, memory_of
from chat.mining_queue import remember
from chat.models import Message
from chat.views.message_actions import POLLS_S
from language.transcripts import Transcript, Turn
from palace.curation.retention import Keeping, set_keeping
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact
from tests.chat.conftest import (
    MOVED,
    current,
    do,
    finished,
    memory_address,
    rest,
    say,
    start,
)

HTMX = {"HX-Request": "true"}


def fact_address(message, fact):
    return reverse("message_fact", args=[message.uuid, fact.memory])


def test_what_was_learnt_is_undone_learnt_again_and_edited(alices, moved, palace):
    [fact] = memory_of(moved).facts
    assert fact.text == "User lives in Porto"
    page = alices.get(moved.conversation.get_absolute_url()).text
    assert "Memory updated: You live in Porto" in page
    undone = alices.post(fact_address(moved, fact), {"do": "undo"}, headers=HTMX).text
    assert "Memory update undone" in undone
    assert not Fact.objects.active().exists()
    assert memory_of(moved).state == State.KEPT
    again = alices.post(fact_address(moved, fact), {"do": "redo"}, headers=HTMX).text
    assert "Memory updated: You live in Porto" in again
    sent = {"do": "edit", "text": "You live in Braga"}
    response = alices.post(fact_address(moved, fact), sent)
    assert response.url.endswith(f"#{moved.anchor}")
    assert [f.text for f in Fact.objects.active()] == ["User lives in Braga"]
    refused = alices.post(fact_address(moved, fact), {"do": "edit", "text": " "}, headers=HTMX)
    assert "Write what it should say" in refused.text


def test_a_fact_that_was_known_before_is_no_update(palace, model):
    turn = Turn("1", "user", MOVED, timezone.now() - timedelta(days=1))
    mine(palace, Transcript("plain", "porto", "Porto", (turn,)))
    conversation = start(palace, "I live in Porto.")
    finished(conversation)
    remember(conversation)
    learn_unread(palace)
    assert memory_of(current(conversation).first()).facts == ()


def test_a_message_is_remembered_at_once(alices, model, palace, choices):
    choices(auto_mine=False)
    conversation = start(palace, MOVED)
    finished(conversation)
    question, reply = current(conversation)
    text = do(alices, question, "remember", **HTMX).text
    assert "Memory updated: You live in Porto" in text
    assert "Kept" in text
    do(alices, question, "remember")
    assert [drawer.text for drawer in Drawer.objects.all()] == [MOVED]
    assert memory_of(reply).state == State.WAITING
    # What comes later finds its place before it.
    do(alices, reply, "remember")
    assert [drawer.text for drawer in Drawer.objects.in_order()] == [MOVED, "OK."]


def test_what_is_remembered_out_of_turn_keeps_the_order_of_the_conversation(palace, model, alices):
    conversation = start(palace, "One.")
    finished(conversation)
    say(conversation, "Two.")
    last = finished(conversation)
    do(alices, last, "remember")
    rest(conversation)
    found = [drawer.external_id for drawer in Drawer.objects.in_order()]
    assert found == [str(message.uuid) for message in current(conversation)]


def test_a_message_is_forgotten_with_what_rests_on_it_alone_and_taken_back(alices, moved):
    text = do(alices, moved, "forget", **HTMX).text
    assert "it is in the trash" in text
    assert not Fact.objects.active().exists()
    assert [drawer.text for drawer in Drawer.objects.kept()] == ["OK."]
    do(alices, moved, "forget")
    do(alices, moved, "undo")
    assert {drawer.text for drawer in Drawer.objects.kept()} == {MOVED, "OK."}
    assert [fact.text for fact in Fact.objects.active()] == ["User lives in Porto"]
    moved.refresh_from_db()
    assert moved.text == MOVED


def test_what_a_keeping_rule_moved_to_the_trash_is_told_so(alices, moved):
    drawer = Drawer.objects.get(text=MOVED)
    set_keeping(drawer.room.wing, Keeping(never=("Porto", "OK")))
    page = alices.get(moved.conversation.get_absolute_url()).text
    assert "The keeping rule of its wing moved it to the trash" in page
    assert "Forgotten: it is in the trash" not in page


def test_what_is_forgotten_before_it_was_mined_is_never_mined(alices, model, palace):
    conversation = start(palace, MOVED)
    finished(conversation)
    question = current(conversation).first()
    do(alices, question, "forget")
    rest(conversation)
    assert [drawer.text for drawer in Drawer.objects.all()] == ["OK."]
    do(alices, question, "undo")
    rest(conversation)
    assert [drawer.text for drawer in Drawer.objects.in_order()] == [MOVED, "OK."]


def test_the_page_asks_what_was_learnt_ever_less_often_and_then_stops(alices, model, palace):
    conversation = start(palace, MOVED)
    finished(conversation)
    question = current(conversation).first()
    page = alices.get(conversation.get_absolute_url()).text
    assert page.count("load delay:") == 1
    for polls in range(len(POLLS_S)):
        part = alices.get(memory_address(question), {"polls": polls}, headers=HTMX).text
        assert f"load delay:{POLLS_S[polls]}s" in part
        assert f"polls={polls + 1}" in part
    for polls in (len(POLLS_S), 99, "x", -1):
        part = alices.get(memory_address(question), {"polls": polls}, headers=HTMX).text
        assert "hx-get" not in part
    assert alices.get(memory_address(question)).url.endswith(question.anchor)
    remember(conversation)
    learn_unread(palace)
    part = alices.get(memory_address(question), {"polls": 1}, headers=HTMX).text
    assert "hx-get" not in part
    assert "Memory updated" in part
    Message.objects.update(said_at=timezone.now() - timedelta(hours=1), mined_at=None)
    Drawer.objects.all().delete()
    assert "load delay:" not in alices.get(conversation.get_absolute_url()).text


def test_a_conversation_is_searched(alices, model, palace):
    conversation = start(palace, "The otters sleep & float.")
    finished(conversation)
    where = conversation.get_absolute_url()
    page = alices.get(where, {"find": "OTTERS float"}).text
    assert "1 message with" in page
    assert "<mark>otters</mark> sleep &amp; <mark>float</mark>." in page
    assert "No message has" in alices.get(where, {"find": "%"}).text


def test_what_is_found_in_a_conversation_is_cut_between_words(alices, model, palace):
    conversation = start(palace, f"{'Seaweed drifts. ' * 20}Otters sleep. {'Waves rock. ' * 40}")
    finished(conversation)
    page = alices.get(conversation.get_absolute_url(), {"find": "otters"}).text
    found = re.search(r"…\xa0(.*?)<mark>Otters</mark>(.*?)\xa0…", page)
    assert found[1].startswith(("Seaweed ", "drifts. "))
    assert found[2].endswith((" Waves", " rock."))


def test_a_message_is_copied_to_the_byte(alices, model, palace):
    text = "  <b>tags</b> & 🏛️\n"
    conversation = start(palace, text)
    finished(conversation)
    response = alices.get(reverse("message_text", args=[current(conversation).first().uuid]))
    assert response.content == text.encode()
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_unknown_acts_and_facts_of_other_messages_are_not_found(alices, moved, palace):
    assert do(alices, moved, "burn").status_code == 404
    reply = current(moved.conversation).last()
    [fact] = memory_of(moved).facts
    assert alices.post(fact_address(reply, fact), {"do": "undo"}).status_code == 404
    assert alices.get(reverse("edit_message", args=[reply.uuid])).status_code == 404

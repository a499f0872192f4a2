"""Off the record, and without memory: what is said there, and what of it is remembered."""

from __future__ import annotations

import uuid

from django.urls import reverse

from chat import replies
from chat.message_memory import State, memory_of
from chat.mining_queue import remember
from chat.models import Conversation
from chat.replies import Choices
from palace.models import Drawer, Fact, RecollectionTrace
from tests.chat.conftest import MOVED, current, do, finished, rest, say, start


def off_the_record(palace, text, *, recalls=True):
    chosen = Choices(recalls=recalls, off_record=True)
    return replies.start(palace, None, text, key=uuid.uuid4(), choices=chosen)


def test_off_the_record_nothing_enters_the_palace(furnished, model):
    before = Drawer.objects.count(), Fact.objects.count()
    conversation = off_the_record(furnished, f"{MOVED} Where does my sister Nora work?")
    reply = finished(conversation)
    conversation = rest(conversation)
    assert (conversation.mine_due_at, remember(conversation)) == (None, 0)
    other = start(furnished, "Where do I live now, and since when?")
    finished(other)
    assert not Drawer.objects.filter(conversation=str(conversation.uuid)).exists()
    assert (Drawer.objects.count(), Fact.objects.count()) == before
    # The palace was read for it, but what was asked is nowhere in it.
    assert "works at the aquarium" in model.requests[0].prompt
    assert reply.recollection is None
    assert not RecollectionTrace.objects.filter(query__contains="Porto").exists()


def test_without_a_model_nothing_said_off_the_record_is_said_to_be_noted(furnished):
    assert "Noted" not in finished(off_the_record(furnished, MOVED)).text


def test_back_on_the_record_what_was_said_off_it_stays_out_unless_asked(palace, model):
    conversation = off_the_record(palace, "My badge says K-77.")
    finished(conversation)
    replies.choose(conversation, Choices())
    say(conversation, "The kettle is on.")
    finished(conversation)
    rest(conversation)
    assert {d.text for d in Drawer.objects.all()} == {"The kettle is on.", "OK."}
    room = Drawer.objects.first().room
    assert "badge" not in room.title
    replies.choose(conversation, Choices(), with_earlier=True)
    rest(conversation)
    texts = [drawer.text for drawer in Drawer.objects.in_order()]
    assert texts == ["My badge says K-77.", "OK.", "The kettle is on.", "OK."]


def test_off_the_record_is_said_on_the_page_and_chosen_in_the_form(alices, model, palace):
    sent = {"text": "Between us", "key": str(uuid.uuid4()), "off_record": "1", "no_recall": "1"}
    alices.post(reverse("chat"), sent)
    conversation = Conversation.objects.get()
    finished(conversation)
    assert (conversation.off_record, conversation.recalls) == (True, False)
    page = alices.get(conversation.get_absolute_url()).text
    assert "Nothing said here enters your palace" in page
    assert "off the record" in alices.get(reverse("chat")).text
    alices.post(reverse("choose", args=[conversation.uuid]), {})
    conversation.refresh_from_db()
    assert (conversation.off_record, conversation.recalls) == (False, True)
    assert "Off the record." not in alices.get(conversation.get_absolute_url()).text


def test_a_message_off_the_record_is_remembered_alone(alices, model, palace):
    conversation = off_the_record(palace, "My badge says K-77.")
    finished(conversation)
    do(alices, current(conversation).first(), "remember")
    assert [drawer.text for drawer in Drawer.objects.all()] == ["My badge says K-77."]


def test_a_reply_that_only_quotes_the_palace_is_not_remembered(alices, furnished):
    conversation = off_the_record(furnished, "Where does my sister Nora work?")
    reply = finished(conversation)
    assert memory_of(reply).state == State.NONE
    do(alices, reply, "remember")
    assert not Drawer.objects.filter(conversation=str(conversation.uuid)).exists()


def test_a_conversation_without_memory_recalls_nothing(furnished, model):
    conversation = replies.start(
        furnished, None, "Where is Nora?", key=uuid.uuid4(), choices=Choices(recalls=False)
    )
    reply = finished(conversation)
    assert "memory_context" not in model.requests[-1].prompt
    assert (reply.recollection, reply.note) == (None, "")
    assert remember(conversation) == 2

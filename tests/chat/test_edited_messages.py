"""A message that is edited is asked again; what was said before stays as an earlier version."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse

from chat import replies
from chat.models import Conversation
from chat.replies import NothingToEdit, StillWriting
from palace.models import Drawer, Fact
from tests.chat.conftest import MOVED, current, finished, say, start
from tests.model_server import Slow


def test_an_edit_asks_again_and_keeps_the_earlier_version(alices, moved, palace, model):
    conversation = moved.conversation
    say(conversation, "And the weather?")
    finished(conversation)
    model.answer("Braga it is.")
    sent = {"text": "I just moved to Braga.", "key": str(uuid.uuid4())}
    where = reverse("edit_message", args=[moved.uuid])
    form = alices.get(where).text
    assert MOVED in form
    assert "the 3 messages after it" in form
    response = alices.post(where, sent)
    finished(conversation)
    assert [m.text for m in current(conversation)] == ["I just moved to Braga.", "Braga it is."]
    assert response.url.endswith(f"#{current(conversation).first().anchor}")
    assert not Drawer.objects.kept().exists()
    assert not Fact.objects.active().exists()
    said = [m["content"] for m in model.requests[-1].body["messages"][1:]]
    assert said == ["I just moved to Braga."]
    earlier = alices.get(reverse("earlier_versions", args=[conversation.uuid])).text
    for text in (MOVED, "And the weather?"):
        assert text in earlier
    # The form sent twice, and a second tab that still shows the old message.
    assert alices.post(where, sent).status_code == 302
    late = alices.post(where, {"text": "Faro.", "key": str(uuid.uuid4())})
    assert late.status_code == 400
    assert "Faro." in late.text
    assert current(conversation).count() == 2


def test_an_edit_waits_for_the_reply_that_is_being_written(palace, model):
    model.answer(Slow(30))
    conversation = start(palace, "Hello")
    with pytest.raises(StillWriting):
        replies.edit(current(conversation).first(), "Hi", key=uuid.uuid4())
    model.stopped.set()
    finished(conversation)
    reply = current(conversation).last()
    reply.conversation = conversation
    with pytest.raises(NothingToEdit):
        replies.edit(reply, "Hi", key=uuid.uuid4())


def test_the_title_follows_an_edit_of_the_first_message_unless_it_was_given(palace, model):
    conversation = start(palace, "Hello there")
    finished(conversation)
    say(conversation, "And the weather?")
    finished(conversation)

    def edit(place, text):
        replies.edit(current(conversation)[place], text, key=uuid.uuid4())
        finished(conversation)
        conversation.refresh_from_db()
        return conversation.title

    assert edit(2, "And the bees?") == "Hello there"
    assert edit(0, "Hello") == "Hello"
    Conversation.objects.update(title="Greetings")
    assert edit(0, "Good evening") == "Greetings"


def test_words_said_again_after_an_edit_are_new(palace, model):
    key = uuid.uuid4()
    conversation = start(palace, "Hello", key=key)
    finished(conversation)
    replies.edit(current(conversation).first(), "Hi", key=uuid.uuid4())
    finished(conversation)
    say(conversation, "Hello", key=key)
    finished(conversation)
    assert [m.text for m in current(conversation)] == ["Hi", "OK.", "Hello", "OK."]

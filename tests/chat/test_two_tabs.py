"""Two tabs, a page gone back to, a form sent twice: nothing is lost, and nothing said twice."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from chat.models import Agent, Conversation, Message
from palace.models import Palace
from tests.chat.conftest import current, finished, say, start
from tests.chat.failures import Gate

HTMX = {"HX-Request": "true"}


@pytest.fixture
def conversation(palace, model):
    conversation = start(palace, "Hello")
    finished(conversation)
    return conversation


def address(name, of):
    return reverse(name, args=[of.uuid])


def hidden(page, name):
    return re.findall(rf'name="{name}" value="([^"]*)"', page)


def texts(conversation):
    return [message.text for message in current(conversation)]


def test_other_words_from_a_page_gone_back_to_are_new(alices, palace, model):
    key = str(uuid.uuid4())
    for text in ("Hello", "Hello", "Something else"):
        response = alices.post(reverse("chat"), {"text": text, "key": key})
        finished(Conversation.objects.get(uuid=response.url.split("/")[-2]))
    assert Conversation.objects.count() == 2
    assert list(Message.objects.filter(role="user").values_list("text", flat=True)) == [
        "Hello",
        "Something else",
    ]


def test_in_a_conversation_too(alices, conversation):
    key = str(uuid.uuid4())
    for text in ("And then?", "And then?", "Something else"):
        alices.post(address("say", conversation), {"text": text, "key": key})
        finished(conversation)
    assert texts(conversation)[2::2] == ["And then?", "Something else"]


def test_a_key_that_is_some_other_message_is_no_reason_to_fail(alices, conversation, palace, model):
    other = start(palace, "Elsewhere")
    reply = finished(other)
    for taken in (reply.uuid, current(other).first().uuid, current(conversation).last().uuid):
        response = alices.post(address("say", conversation), {"text": "Elsewhere", "key": taken})
        assert response.status_code == 302
        finished(conversation)
    assert texts(conversation)[2::2] == ["Elsewhere"] * 3
    assert texts(other) == ["Elsewhere", "OK."]


def test_a_tab_that_was_left_behind_catches_up_when_it_speaks(alices, conversation):
    page = alices.get(conversation.get_absolute_url()).text
    (seen,) = hidden(page, "seen")
    say(conversation, "From another tab")
    finished(conversation)
    sent = {"text": "From this one", "key": uuid.uuid4(), "seen": seen}
    part = alices.post(address("say", conversation), sent, headers=HTMX).text
    finished(conversation)
    assert part.count("<article") == 4
    assert part.index("From another tab") < part.index("From this one")
    assert hidden(part, "seen") == ["5"]


def test_a_tab_that_missed_much_is_loaded_again(alices, conversation, monkeypatch):
    monkeypatch.setattr("chat.views.messages.MISSED_AT_MOST", 3)
    say(conversation, "From another tab")
    finished(conversation)
    sent = {"text": "From this one", "key": uuid.uuid4(), "seen": "1"}
    response = alices.post(address("say", conversation), sent, headers=HTMX)
    finished(conversation)
    assert response.headers["HX-Refresh"] == "true"
    assert "From this one" in alices.get(conversation.get_absolute_url()).text


@pytest.mark.parametrize("seen", ["", "x", "-1", "7", "999999999999"])
def test_odd_places_bring_the_two_new_messages(alices, conversation, seen):
    sent = {"text": "More", "key": uuid.uuid4(), "seen": seen}
    part = alices.post(address("say", conversation), sent, headers=HTMX).text
    finished(conversation)
    assert part.count("<article") == 2


def test_trying_again_twice_makes_one_new_reply(alices, conversation, model):
    gate = Gate(model)
    reply = current(conversation).last()
    sent = {"reply": reply.uuid}
    parts = [alices.post(address("retry", conversation), sent, headers=HTMX) for _ in range(2)]
    gate.opened.set()
    again = finished(conversation)
    assert all(str(again.uuid) in part.text for part in parts)
    assert Message.objects.filter(conversation=conversation, position=1).count() == 2


def test_a_reply_nobody_looked_at_is_not_put_aside(alices, conversation):
    page = alices.get(conversation.get_absolute_url()).text
    (seen,) = hidden(page, "reply")
    say(conversation, "From another tab")
    unseen = finished(conversation)
    response = alices.post(address("retry", conversation), {"reply": seen})
    assert response.status_code == 400
    assert "no longer the last reply" in response.text
    unseen.refresh_from_db()
    assert unseen.replaced_at is None


@pytest.mark.parametrize(
    "sent", [{}, {"reply": "x"}, {"reply": "7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10"}]
)
def test_what_is_no_reply_cannot_be_tried_again(alices, conversation, sent):
    assert alices.post(address("retry", conversation), sent).status_code == 400
    assert texts(conversation) == ["Hello", "OK."]


def test_while_redis_is_away_the_page_says_so_and_keeps_what_is_typed(
    alices, palace, model, own_redis
):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    own_redis.kill()
    for name, of, sent in (
        ("stop_reply", reply, {}),
        ("retry", conversation, {"reply": reply.uuid}),
        ("say", conversation, {"text": "My <words>", "key": uuid.uuid4()}),
    ):
        response = alices.post(address(name, of), sent)
        assert response.status_code == 503
        assert "Redis" in response.text
        part = alices.post(address(name, of), sent, headers=HTMX)
        assert (part.status_code, part.headers["HX-Retarget"]) == (400, "#text-error")
    assert "My &lt;words&gt;" in response.text
    gate.opened.set()
    assert finished(conversation).text == "Late."


def test_a_new_conversation_that_is_refused_leaves_the_box_alone(alices, palace, model):
    sent = {"text": " ", "key": uuid.uuid4()}
    part = alices.post(reverse("chat"), sent, headers=HTMX)
    assert (part.status_code, part.headers["HX-Retarget"]) == (400, "#text-error")
    begun = alices.post(reverse("chat"), sent | {"text": "Hello"}, headers=HTMX)
    conversation = Conversation.objects.get(palace=palace)
    assert begun.headers["HX-Redirect"] == conversation.get_absolute_url()


def test_a_refused_form_can_be_sent_again(alices, conversation):
    page = alices.post(address("say", conversation), {"text": "Hello"}).text
    (key,) = hidden(page, "key")
    assert alices.post(address("say", conversation), {"text": "Hi", "key": key}).status_code == 302
    finished(conversation)


def test_an_earlier_stretch_leads_back_to_the_end(alices, palace, conversation):
    page = alices.get(conversation.get_absolute_url(), {"before": "1"}).text
    assert "Hello" in page
    assert 'id="composer"' not in page
    assert f'href="{conversation.get_absolute_url()}#latest"' in page


def test_ids_of_two_palaces_do_not_mix(alices, conversation, bob, model):
    bobs = Palace.objects.own(bob)
    agent = Agent.objects.create(palace=bobs, name="Bob's coach")
    theirs = start(bobs, "Bob's words", agent=agent)
    reply = finished(theirs)
    sent = {"text": "Hi", "key": uuid.uuid4(), "agent": agent.uuid}
    assert alices.post(reverse("chat"), sent).status_code == 400
    assert "coach" not in alices.get(reverse("chat"), {"agent": agent.uuid}).text
    refused = alices.post(address("retry", conversation), {"reply": reply.uuid})
    assert refused.status_code == 400
    assert alices.post(address("stop_reply", reply)).status_code == 404
    # The same key in another palace is another message.
    key = current(theirs).first().uuid
    sent = {"text": "Bob's words", "key": key}
    response = alices.post(reverse("chat"), sent)
    mine = Conversation.objects.get(uuid=response.url.split("/")[-2])
    finished(mine)
    assert mine.palace != bobs
    assert texts(theirs)[0] == "Bob's words"
    assert len(texts(theirs)) == 2


def test_what_another_palace_remembered_is_not_shown(alices, furnished, conversation, bob):
    theirs = start(Palace.objects.own(bob), "Where does Nora work?")
    reply = finished(theirs)
    Message.objects.filter(conversation=conversation).update(recollection=reply.recollection)
    page = alices.get(conversation.get_absolute_url()).text
    assert 'class="remembered"' not in page
    assert "Nothing close" not in page


def test_a_conversation_deleted_in_another_tab_is_not_found(alices, conversation):
    reply = current(conversation).last()
    addresses = [address(name, conversation) for name in ("say", "retry", "remember_conversation")]
    addresses.append(address("stop_reply", reply))
    for _ in range(2):
        alices.post(address("delete_conversation", conversation))
    assert [alices.post(each).status_code for each in addresses] == [404] * 4

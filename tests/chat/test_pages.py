"""The chat's pages: what they show, what their forms do, and what they refuse."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat import live_reply
from chat.mining_queue import remember
from chat.models import Agent, Conversation, Message
from chat.views.message_rows import PAGE_SIZE
from palace.models import Drawer, RecollectionTrace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.chat.conftest import current, finished, start

HTMX = {"HX-Request": "true"}


def key():
    return str(uuid.uuid4())


def address(name, of):
    return reverse(name, args=[of.uuid])


def long_conversation(palace, length):
    conversation = Conversation.objects.create(palace=palace, title="Long", spoke_at=timezone.now())
    Message.objects.bulk_create(
        Message(
            palace=palace,
            conversation=conversation,
            position=place,
            role="assistant" if place % 2 else "user",
            text=f"Message {place}.",
            said_at=timezone.now(),
        )
        for place in range(length)
    )
    return conversation


def test_a_new_conversation_begins_from_the_list(alices, model, palace):
    response = alices.post(reverse("chat"), {"text": "Hello\r\nthere", "key": key()})
    conversation = Conversation.objects.get(palace=palace)
    question = current(conversation).first()
    assert response.url == f"{conversation.get_absolute_url()}#{question.anchor}"
    assert finished(conversation).text == "OK."
    assert current(conversation).first().text == "Hello\nthere"
    page = alices.get(response.url).text
    assert "Hello\nthere" in page
    assert "OK." in page
    assert conversation.title in alices.get(reverse("chat")).text


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"text": " ", "key": key()}, "nothing to send"),
        ({"text": "Hello"}, "form was not complete"),
        ({"text": "Hello", "key": "7"}, "form was not complete"),
        ({"text": "x" * 200_001, "key": key()}, "at most 200,000"),
        ({"text": "Hello", "key": key(), "agent": str(uuid.uuid4())}, "no longer here"),
    ],
)
def test_what_is_wrong_is_said_beside_the_box(alices, sent, sentence):
    response = alices.post(reverse("chat"), sent)
    assert response.status_code == 400
    assert sentence in response.text
    assert sent["text"].strip()[:100] in response.text
    assert not Conversation.objects.exists()


def test_a_message_sent_by_htmx_brings_both_messages_and_an_empty_box(alices, model, palace):
    conversation = start(palace, "Hello")
    finished(conversation)
    sent = {"text": "And then?", "key": key()}
    response = alices.post(address("say", conversation), sent, headers=HTMX)
    assert response.text.count("<article") == 2
    assert "And then?" in response.text
    assert 'hx-swap-oob="true"' in response.text
    assert sent["key"] not in re.findall(r'name="key" value="([^"]+)"', response.text)
    reply = finished(conversation)
    page = alices.get(conversation.get_absolute_url()).text
    assert address("reply_stream", reply) not in page


def test_a_refused_message_stays_in_its_box(alices, model, palace):
    conversation = start(palace, "Hello")
    finished(conversation)
    response = alices.post(address("say", conversation), {"text": "", "key": key()}, headers=HTMX)
    assert response.status_code == 400
    # Only the sentence is changed: what is being written in the box stays as it is.
    assert response.headers["HX-Retarget"] == "#text-error"
    assert "nothing to send" in response.text
    assert "<textarea" not in response.text
    plain = alices.post(address("say", conversation), {"text": "", "key": key()})
    assert plain.status_code == 400
    assert "Hello" in plain.text


def test_while_redis_is_away_nothing_is_sent_and_nothing_is_lost(alices, palace, own_redis):
    own_redis.kill()
    response = alices.post(reverse("chat"), {"text": "Important", "key": key()})
    assert response.status_code == 503
    assert "Redis" in response.text
    assert "Important" in response.text
    assert not Conversation.objects.exists()


def test_beside_a_reply_is_what_was_remembered(alices, model, furnished):
    conversation = start(furnished, "Where does my sister Nora work?")
    reply = finished(conversation)
    page = alices.get(conversation.get_absolute_url()).text
    drawer = Drawer.objects.get(text__contains="works at the aquarium")
    assert '<details class="remembered">' in page
    assert re.search(r"<span>Remembered \d messages?( and \d facts?)?</span></summary>", page)
    assert drawer.get_absolute_url() in page
    assert str(drawer.pointer) in page
    drawer.trash()
    page = alices.get(conversation.get_absolute_url()).text
    assert drawer.get_absolute_url() not in page
    assert "no longer in the palace" in page
    assert reply.text in page


def test_long_histories_are_paged(alices, palace, django_assert_max_num_queries):
    conversation = long_conversation(palace, PAGE_SIZE * 3 + 5)
    with django_assert_max_num_queries(18):
        page = alices.get(conversation.get_absolute_url()).text
    assert page.count("<article") == PAGE_SIZE
    seen = set(re.findall(r"Message (\d+)\.", page))
    while found := re.search(r'href="([^"]+\?before=\d+)"', page):
        page = alices.get(found[1], headers=HTMX).text
        assert "<html" not in page
        seen |= set(re.findall(r"Message (\d+)\.", page))
    assert len(seen) == PAGE_SIZE * 3 + 5


def test_an_action_leads_back_to_a_page_that_shows_its_message(alices, palace):
    conversation = long_conversation(palace, PAGE_SIZE * 2)
    for position in (0, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE * 2 - 1):
        message = current(conversation).get(position=position)
        target = alices.get(reverse("message_memory", args=[message.uuid])).url
        assert f'id="{message.anchor}"' in alices.get(target).text
        # The page of the latest messages has the box to write in.
        assert ("before=" in target) == (position < PAGE_SIZE)


def test_many_memories_cost_no_more_queries_than_few(
    alices, furnished, django_assert_max_num_queries
):
    found = recall(furnished, RecallRequest("Where does my sister Nora work?"))
    traces = [RecollectionTrace.objects.get(uuid=found.uuid)]
    conversation = long_conversation(furnished, 2 * PAGE_SIZE)
    for message in conversation.messages.filter(role="assistant"):
        trace = traces[-1]
        trace.pk, trace.uuid = None, uuid.uuid4()
        trace.save()
        message.recollection = trace.uuid
        message.save()
    with django_assert_max_num_queries(18):
        page = alices.get(conversation.get_absolute_url()).text
    assert page.count('<details class="remembered">') == PAGE_SIZE // 2
    # Those of the last reply are there; the others' come as one unfolds them.
    assert page.count("remembered-text") == len(found.hits)
    first = conversation.messages.filter(role="assistant").order_by("position").first()
    link = page.index("/memories/")
    assert page.count("/memories/") == PAGE_SIZE // 2 - 1
    unfolded = re.search(r'hx-get="([^"]+/memories/)"', page[link - 80 :])[1]
    part = alices.get(unfolded, headers=HTMX).text
    assert part.count("remembered-text") == len(found.hits)
    assert "<html" not in part
    where = address("reply_memories", first)
    assert alices.get(where).url == reverse("recall_detail", args=[first.recollection])


def test_a_pointer_in_an_earlier_reply_is_a_link(alices, furnished):
    found = recall(furnished, RecallRequest("Where does my sister Nora work?"))
    conversation = long_conversation(furnished, 4)
    drawer = found.hits[0].drawer
    earlier = conversation.messages.get(position=1)
    earlier.recollection, earlier.text = found.uuid, f"At the aquarium [{drawer.pointer}]."
    earlier.save()
    page = alices.get(conversation.get_absolute_url()).text
    assert f'href="{drawer.get_absolute_url()}"' in page
    assert "remembered-text" not in page


@pytest.mark.parametrize("before", ["x", "-1", "99999999999", "", "٣"])
def test_a_place_that_is_none_shows_the_end(alices, palace, before):
    conversation = long_conversation(palace, 3)
    response = alices.get(conversation.get_absolute_url(), {"before": before})
    assert response.status_code == 200
    assert "Message 2." in response.text


def test_a_conversation_is_remembered_by_hand(alices, model, palace, choices, queued):
    choices(auto_mine=False)
    conversation = start(palace, "Hello")
    finished(conversation)
    page = alices.get(conversation.get_absolute_url()).text
    assert "Remember 2 messages now" in page
    response = alices.post(address("remember_conversation", conversation), follow=True)
    assert "Remembered 2 messages." in response.text
    assert Drawer.objects.filter(palace=palace).count() == 2
    # They are kept; what is made of them, by asking a model perhaps, is not waited for.
    assert len(model.requests) == 1
    assert "mine_room" in queued()
    assert (
        "already" in alices.post(address("remember_conversation", conversation), follow=True).text
    )
    room = Drawer.objects.first().room
    assert room.get_absolute_url() in response.text


def test_renaming(alices, palace):
    conversation = long_conversation(palace, 1)
    where = address("rename_conversation", conversation)
    for unseen in (" ", "\u200b", "\x07\u202e"):
        assert alices.post(where, {"title": unseen}).status_code == 400
    assert alices.post(where, {"title": " <b>New</b>  name "}).status_code == 302
    conversation.refresh_from_db()
    assert conversation.title == "<b>New</b> name"
    assert "&lt;b&gt;New" in alices.get(conversation.get_absolute_url()).text


def test_deleting_keeps_the_memories_unless_asked_otherwise(alices, model, palace):
    kept, dropped = start(palace, "Keep me"), start(palace, "Drop me")
    for conversation in (kept, dropped):
        finished(conversation)
        remember(conversation)
        asked = alices.get(address("delete_conversation", conversation)).text
        assert "<strong>1 conversation, 2 messages" in asked
        assert "Delete the chat, keep the memory" in asked
        assert "Delete and forget it too" in asked
    alices.post(address("delete_conversation", kept))
    alices.post(address("delete_conversation", dropped), {"drawers": "1"})
    assert not Message.objects.exists()
    assert {d.text for d in Drawer.objects.kept()} == {"Keep me", "OK."}
    assert Drawer.objects.trashed().count() == 2


def test_ticked_conversations_are_deleted_together(alices, model, palace):
    first, second, third = (start(palace, text) for text in ("One", "Two", "Three"))
    for conversation in (first, second, third):
        finished(conversation)
        remember(conversation)
    assert f'name="conversation" value="{first.uuid}"' in alices.get(reverse("chat")).text
    where, ticked = reverse("selected_conversations"), {"conversation": [first.uuid, second.uuid]}
    asked = alices.post(where, ticked).text
    assert "Delete 2 conversations?" in asked
    assert "<strong>2 conversations, 4 messages" in asked
    assert Conversation.objects.count() == 3
    told = alices.post(where, {**ticked, "sure": "1", "drawers": "1"}, follow=True).text
    assert "2 conversations are deleted." in told
    assert Conversation.objects.get() == third
    assert Drawer.objects.trashed().count() == 4
    assert "Nothing was selected." in alices.post(where, {"sure": "1"}, follow=True).text
    for gone in (first.uuid, "x"):
        assert alices.post(where, {"conversation": gone, "sure": "1"}).status_code == 404


def test_agents_are_made_changed_and_deleted(alices, palace, model):
    new = {"name": " Coach  Carter ", "instructions": " Be brief.\r\n", "recalls": "on"}
    assert alices.post(reverse("agents"), new).url == reverse("agents")
    agent = Agent.objects.get(palace=palace)
    assert (agent.name, agent.instructions) == ("Coach Carter", " Be brief.\n")
    for wrong in ("coach carter", "", "\u200b", "x" * 61):
        assert alices.post(reverse("agents"), {**new, "name": wrong}).status_code == 400
    assert Agent.objects.count() == 1

    conversation = start(palace, "Hello", agent=agent)
    finished(conversation)
    assert alices.post(agent.get_absolute_url(), {**new, "recalls": ""}).status_code == 302
    agent.refresh_from_db()
    assert not agent.recalls
    assert "without memories" in alices.get(conversation.get_absolute_url()).text
    assert "1 conversation" in alices.get(address("delete_agent", agent)).text
    alices.post(address("delete_agent", agent))
    assert "the assistant" in alices.get(conversation.get_absolute_url()).text


def test_stopping_and_retrying_by_plain_forms(alices, model, palace):
    conversation = start(palace, "Hello")
    reply = finished(conversation)
    question = current(conversation).first()
    where = f"{conversation.get_absolute_url()}#{question.anchor}"
    assert f'id="{question.anchor}"' in alices.get(where).text
    assert alices.post(address("stop_reply", reply)).url == where
    assert alices.post(address("retry", conversation), {"reply": reply.uuid}).url == where
    again = finished(conversation)
    assert again.uuid != reply.uuid
    assert "1 earlier version" in alices.get(conversation.get_absolute_url()).text


def test_without_scripts_a_page_with_a_growing_reply_reloads_itself(alices, palace):
    conversation = long_conversation(palace, 2)
    assert "http-equiv" not in alices.get(conversation.get_absolute_url()).text
    Message.objects.filter(position=1).update(
        status="writing", writer=live_reply.writer().sign_on()
    )
    page = alices.get(conversation.get_absolute_url()).text
    address = rf"{conversation.get_absolute_url()}\?at=\d+#{conversation.messages.first().anchor}"
    reloads = rf'<noscript><meta [^>]*content="2; url={address}">'
    assert re.search(reloads, page)
    assert 'aria-busy="true"' in page
    assert "sse-connect" in page


def test_forms_need_their_token(alice, palace):
    conversation = long_conversation(palace, 2)
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    for name in ("say", "retry", "remember_conversation", "delete_conversation"):
        assert client.post(address(name, conversation), {"text": "x"}).status_code == 403
    assert Message.objects.count() == 2


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_far_too_much_is_refused_as_that_and_not_as_damaged(alices, headers):
    sent = {"text": "x" * 10_000_000, "key": key()}
    response = alices.post(reverse("chat"), sent, headers=headers)
    # No status that pages swap in: the box keeps what was typed.
    assert response.status_code == 413
    assert "This is too much at once" in response.text
    assert not Conversation.objects.exists()

"""The stream that a page follows while a reply is written, as the product's own server sends it."""

from __future__ import annotations

import http.client
import re
import threading
from contextlib import closing

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from chat import live_reply
from chat.models import Message
from chat.views import messages
from settings_app.sessions import end_others
from tests.asgi_server import AsgiServer
from tests.browser.conftest import database_sessions
from tests.chat.conftest import current, finished, let_threads_end, start
from tests.chat.failures import Gate, Pieces
from tests.model_server import Text
from tests.polling import PATIENCE_S, until


class Reader:
    """Somebody signed in whose browser follows replies."""

    def __init__(self, server, user):
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self._cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}
        self._address = server.url.removeprefix("http://")

    def follow(self, reply, *, until_event="done", opened=lambda: None):
        """The events' names and what they carry, up to the one named or the stream's end."""
        with closing(http.client.HTTPConnection(self._address, timeout=PATIENCE_S)) as door:
            where = reverse("reply_stream", args=[reply.uuid])
            door.request("GET", where, headers=self._cookie)
            answer = door.getresponse()
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "text/event-stream"
            opened()
            return list(_events(answer, until_event))


def _events(lines, last):
    name, data = "", []
    for line in map(bytes.decode, lines):
        field, _, value = line.rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not line.strip() and name:
            yield name, "\n".join(data)
            if name == last:
                return
            name, data = "", []


@pytest.fixture
def server(transactional_db):
    before = database_sessions()
    with AsgiServer() as server:
        yield server
    let_threads_end()
    assert server.misplaced_queries == []
    until(lambda: database_sessions() <= before)


@pytest.fixture
def reader(server, alice):
    return Reader(server, alice)


def test_the_reply_comes_in_growing_pictures_and_then_whole(reader, furnished, model):
    model.answer(Text("A *wire* that was too thin. " * 10, pause_s=0.02))
    conversation = start(furnished, "What does Nora feed?")
    events = reader.follow(current(conversation).last())
    names = [name for name, _ in events]
    assert names[0] == "recalled"
    assert names[-1] == "done"
    pictures = [html for name, html in events if name == "text"]
    assert len(pictures) > 2
    assert sorted(pictures, key=len) == pictures
    assert "<em>wire</em>" in pictures[-1]
    assert "Try again" in events[-1][1]


def test_a_reply_cannot_end_its_stream_or_name_events(reader, palace, model):
    text = "a\n\nevent: done\ndata: <p>fake</p>\n\nid: 7\r\nretry: 1\rb\u2028c\n:d"
    model.answer(Pieces(text))
    conversation = start(palace, "Hello")
    events = reader.follow(current(conversation).last())
    assert {name for name, _ in events} <= {"recalled", "text", "done"}
    assert [name for name, _ in events].count("done") == 1
    assert "event: done" in events[-1][1]
    assert "<p>fake" not in events[-1][1]
    assert finished(conversation).text == text


def test_one_that_is_over_is_sent_at_once(reader, palace, model):
    conversation = start(palace, "Hello")
    reply = finished(conversation)
    live_reply._redis().delete(f"loci:reply:{reply.uuid}")
    ((name, html),) = reader.follow(reply)
    assert (name, "OK." in html) == ("done", True)


def test_who_looks_on_reads_that_it_was_deleted(reader, palace, model, alice):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    client = Client()
    client.force_login(alice)

    def delete():
        client.post(reverse("delete_conversation", args=[conversation.uuid]))
        connection.close()

    soon = threading.Timer(0.5, delete)
    soon.start()
    events = reader.follow(reply)
    soon.join()
    gate.opened.set()
    assert events[-1][0] == "done"
    assert "has been deleted" in events[-1][1]
    assert not Message.objects.exists()


@pytest.mark.parametrize("way", ["ended in the list", "password changed"])
def test_a_browser_that_is_signed_out_meanwhile_reads_no_further(
    reader, palace, model, alice, monkeypatch, way
):
    monkeypatch.setattr(messages, "SIGNED_IN_FOR_S", 0)
    gate = Gate(model)
    conversation = start(palace, "Hello")

    def sign_out():
        if way == "password changed":
            alice.set_password("another one")
            alice.save()
        else:
            end_others(alice, None)
        gate.opened.set()

    events = reader.follow(current(conversation).last(), opened=sign_out)
    assert "Late." not in "".join(html for _, html in events)
    assert finished(conversation).text == "Late."


def test_while_redis_is_away_the_stream_ends_and_the_next_one_goes_on(
    reader, palace, model, own_redis
):
    story = Text("Once upon a time a wire was far too thin. " * 12, pause_s=0.02)
    model.answer(story)
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live_reply.text_so_far(reply.uuid))
    kill = threading.Timer(0.3, own_redis.kill)
    kill.start()
    assert "done" not in [name for name, _ in reader.follow(reply)]
    kill.join()
    own_redis.start()
    events = reader.follow(reply)
    pictures = [html for name, html in events if name == "text"]
    assert all(html.startswith("<p>Once upon a time") for html in pictures)
    assert story.text.strip() in events[-1][1]


def test_what_ended_unseen_is_sent_although_redis_is_away(reader, palace, model, own_redis):
    model.answer(Text("Once upon a time a wire was far too thin. " * 3, pause_s=0.02))
    conversation = start(palace, "Tell me a story.")
    reply = current(conversation).last()
    until(lambda: live_reply.text_so_far(reply.uuid))
    own_redis.kill()
    finished(conversation)
    assert [name for name, _ in reader.follow(reply)] == ["done"]


def test_times_in_the_stream_are_the_readers_own(reader, palace, model, choices, alice):
    choices(time_zone="Asia/Kolkata")
    conversation = start(palace, "Hello")
    events = reader.follow(current(conversation).last())
    client = Client()
    client.force_login(alice)
    page = client.get(conversation.get_absolute_url()).text
    (streamed,) = re.findall(r"<time[^>]*>[^<]*</time>", events[-1][1])
    assert "+05:30" in streamed
    assert streamed in page


def test_many_readers_see_the_same(reader, palace, model):
    model.answer(Text("A wire that was too thin. " * 20, pause_s=0.02))
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(reader.follow(reply)[-1])) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 20
    assert {name for name, _ in seen} == {"done"}
    tokens = re.compile(r'value="[^"]{64}"')
    assert len({tokens.sub("", html) for _, html in seen}) == 1


def test_who_hangs_up_leaves_nothing_behind(reader, palace, model):
    gate = Gate(model)
    conversation = start(palace, "Hello")
    reply = current(conversation).last()
    before = live_reply._redis().info("clients")["connected_clients"]
    # A connection to the database is not kept while nothing comes.
    sessions = database_sessions()
    assert reader.follow(reply, until_event="recalled")
    until(lambda: database_sessions() <= sessions)
    until(lambda: live_reply._redis().info("clients")["connected_clients"] <= before)
    live_reply.stop(reply)
    gate.opened.set()
    let_threads_end()

"""What the browser tests stand on: the server and the worker beside them."""

from __future__ import annotations

import asyncio
import http.client
import time
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from palace.mining import tasks
from palace.models import Drawer, Passage
from palace.storage.transcript_filing import file_transcript
from tests.asgi_server import PATIENCE_S, AsgiServer
from tests.browser.conftest import database_sessions
from tests.conversations import BATTERY


async def asks_in_the_wrong_place(request):
    connection.ensure_connection()
    return HttpResponse("It went unnoticed.")


async def never_ends(request):
    async def events():
        while True:
            yield "data: still here\n\n"
            await asyncio.sleep(0.05)

    return StreamingHttpResponse(events(), content_type="text/event-stream")


urlpatterns = [path("wrong/", asks_in_the_wrong_place), path("stream/", never_ends)]


@pytest.fixture
def ask():
    """Asks a server for a page; the answers can be read until the end of the test."""
    connections = []

    def get(server, path, client=None):
        asked = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        connections.append(asked)
        cookies = client.cookies.output(header="", sep=";") if client else ""
        asked.request("GET", path, headers={"Cookie": cookies})
        return asked.getresponse()

    yield get
    for each in connections:
        each.close()


def test_it_serves_pages_and_what_they_are_made_of(loci_server, ask):
    assert b"Sign in" in ask(loci_server, "/sign-in/").read()
    sheet = ask(loci_server, "/static/css/base.css")
    assert sheet.status == 200
    assert sheet.headers["Content-Type"].startswith("text/css")


def test_it_stops_at_once_though_somebody_listens(transactional_db, settings, ask):
    settings.ROOT_URLCONF = __name__
    with AsgiServer() as server:
        stream = ask(server, "/stream/")
        assert stream.readline() == b"data: still here\n"
        stopping = time.monotonic()
    # Else it would end the stream when its patience with what is unanswered ends.
    assert time.monotonic() - stopping < PATIENCE_S


def test_a_query_on_the_event_loop_is_noticed(transactional_db, settings, ask):
    """As a browser test is run, which silences Django's own refusal."""
    settings.ROOT_URLCONF = __name__
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with AsgiServer() as server:
            ask(server, "/wrong/").read()
    assert len(server.misplaced_queries) == 1
    assert "asks_in_the_wrong_place" in server.misplaced_queries[0]


def test_a_page_that_is_not_there_leaves_no_connection_open(
    transactional_db, palace, alice, client, ask
):
    client.force_login(alice)
    before = database_sessions()
    with AsgiServer() as server:
        for _ in range(3):
            answer = ask(server, "/memory/nothing/", client)
            assert answer.status == 404
            assert b"alice" in answer.read()
    assert database_sessions() <= before


@pytest.mark.exhaustive
def test_the_worker_does_what_is_queued_and_what_follows_from_it(loci_worker, palace):
    room = file_transcript(palace, BATTERY).room
    tasks.mine_room.delay(room.pk)
    loci_worker.finish()
    assert not Drawer.objects.unmined().exists()
    assert Passage.objects.filter(palace=palace).exclude(embedding=None).count() == len(
        BATTERY.turns
    )

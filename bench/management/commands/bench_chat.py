"""`manage.py bench_chat`: the time to the first word of a reply, compared with the model alone."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
import threading
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import urlencode

import uvicorn
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from tqdm import tqdm

from bench.metrics import percentile
from bench.runs import UnrestrictedCommand, own_schema
from bench.stub_servers import HOST, played_model
from bench.synthetic_palace import conversations, questions
from chat.models import Conversation
from llm import chat, providers
from llm.models import Usage
from palace.mining.pipeline import mine_many
from palace.models import Drawer, Palace
from settings_app.models import MemorySettings

MODEL = "played"
# An allowed host name, and any CSRF token.
TOKEN = "t" * 32
WORDS = 40


class _SlowModel(BaseHTTPRequestHandler):
    """A chat model that sends the same few words after a pause, one event each."""

    protocol_version = "HTTP/1.1"
    thinks_s: ClassVar[float] = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.thinks_s)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for place in range(WORDS + 1):
            choice = {
                "index": 0,
                "delta": {"content": f"word{place} "} if place < WORDS else {},
                "finish_reason": None if place < WORDS else "stop",
            }
            event = {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, format: str, *_args: object) -> None:
        """Do not log requests."""


@contextmanager
def web_server() -> Iterator[tuple[str, int]]:
    """Run the production server in a thread; yields its host and port."""
    config = uvicorn.Config(
        "config.asgi:application", lifespan="off", log_level="warning", access_log=False
    )
    config.load()
    server = uvicorn.Server(config)
    with closing(socket.create_server((HOST, 0))) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            yield HOST, listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


class ChatUser:
    """A signed-in user who chats as a browser does."""

    def __init__(self, user: User, address: tuple[str, int]) -> None:
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self._address = address
        self._headers = {
            "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}; csrftoken={TOKEN}",
            "X-CSRFToken": TOKEN,
            "HX-Request": "true",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def first_word_ms(self, conversation: Conversation, text: str) -> float:
        """Send a message and read the whole reply; returns milliseconds to its first words."""
        body = urlencode({"key": uuid.uuid4(), "text": text})
        started = time.perf_counter()
        said = self._ask("POST", reverse("say", args=[conversation.uuid]), body)
        page = said.read().decode()
        stream_address = re.search(r'sse-connect="([^"]+)"', page)
        if said.status != HTTPStatus.OK or stream_address is None:
            raise CommandError(f"Saying something was answered with {said.status}: {page[:300]}")
        first_ms = 0.0
        with closing(self._ask("GET", stream_address[1])) as stream:
            for line in stream:
                # A reply that is over by then comes whole, as the last event.
                if line in {b"event: text\n", b"event: done\n"} and not first_ms:
                    first_ms = (time.perf_counter() - started) * 1000
                if line == b"event: done\n":
                    break
        return first_ms

    def _ask(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(*self._address, timeout=60)
        connection.request(method, path, body, self._headers)
        return connection.getresponse()


def bare_first_word_ms(base_url: str, text: str) -> float:
    """The same model asked directly, through the same client library."""
    endpoint = providers.endpoint(base_url, MODEL)
    started = time.perf_counter()
    words = chat.stream(
        [{"role": "user", "content": text}], endpoint=endpoint, purpose=Usage.Purpose.CHAT
    )
    with closing(words):
        next(words)
        first_ms = (time.perf_counter() - started) * 1000
        for _ in words:
            pass
    return first_ms


class Command(UnrestrictedCommand):
    help = (
        "Measure the time to the first streamed word through the chat's own door, in turns with "
        "the same model asked directly. One JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--drawers", type=int, default=3000, help="In the palace.")
        parser.add_argument("--turns", type=int, default=40)
        parser.add_argument("--thinks-ms", type=float, default=0, help="Before the first word.")
        parser.add_argument("--keep", action="store_true", help="Keep the palace for next time.")

    def handle(
        self, *, drawers: int, turns: int, thinks_ms: float, keep: bool, **options: Any
    ) -> None:
        data = f"{drawers} drawers"
        handler = type("Model", (_SlowModel,), {"thinks_s": thinks_ms / 1000})
        with own_schema("bench_chat", keep=keep, data=data), played_model(handler) as url:
            user = _resident(drawers, url)
            with web_server() as address:
                bare, loci = self._measure(user, address, url, drawers, turns)
        report: dict[str, Any] = {"drawers": drawers, "turns": turns, "thinks_ms": thinks_ms}
        for name, times in (("bare", bare), ("loci", loci)):
            report[f"{name}_p50_ms"] = round(percentile(times, 0.5), 1)
            report[f"{name}_p95_ms"] = round(percentile(times, 0.95), 1)
        self.stdout.write(json.dumps(report))

    def _measure(
        self, user: User, address: tuple[str, int], url: str, drawers: int, turns: int
    ) -> tuple[list[float], list[float]]:
        """In turns, so that a machine that slows down slows both alike; the first is to warm up."""
        talker, palace = ChatUser(user, address), Palace.objects.own(user)
        bare, loci = [], []
        generated_questions = questions(list(conversations(drawers)))
        for text in tqdm(list(islice(generated_questions, turns + 1)), unit="turn", disable=None):
            conversation = Conversation.objects.create(
                palace=palace, title=text, spoke_at=timezone.now()
            )
            bare.append(bare_first_word_ms(url, text))
            loci.append(talker.first_word_ms(conversation, text))
        return bare[1:], loci[1:]


def _resident(drawers: int, url: str) -> User:
    """Somebody with a palace, whose model is the one played here, and who mines by hand."""
    user, _ = User.objects.get_or_create(username="resident")
    palace = Palace.objects.own(user)
    if not Drawer.objects.within(palace).exists():
        transcripts = conversations(drawers)
        mine_many(palace, tqdm(transcripts, desc="Furnishing", leave=False, disable=None))
    values = {"provider": url, "model": MODEL, "auto_mine": False}
    MemorySettings.objects.update_or_create(owner=user, defaults=values)
    return user

"""A real HTTP server that speaks OpenAI's protocol and answers what a test or `fire` scripts.

    with ModelServer() as server:
        server.answer("Hello.")                            # Every chat call gets this, unless
        server.script(["One.", Status(500), NotJson()])    # ... it has a reply of its own, in turn.
        endpoint = providers.endpoint(server.base_url, "some-model", "some-key")
        ...
        assert server.requests[0].body["messages"][0]["role"] == "system"

or as a fixture: `model_server` in tests/llm/conftest.py is this with `ModelServer()` around it.

A reply is a text, a `Text` (with finish reason, usage, pauses), one of the failures below, or a
function that takes the `Request` and returns a reply. A text is sent whole or, where the request
says `"stream": true`, in pieces as server-sent events.

POST /v1/chat/completions   what is scripted, else the standing answer, else "OK."
POST /v1/embeddings         what `script(..., path=EMBEDDINGS)` holds, else `embedding_of` each
                            text, with as many dimensions as the request or the server says
GET  /v1/models             `server.models`

`ModelServer(api_key="…")` refuses calls without that key, quoting the wrong one as OpenAI does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
MODELS = "/v1/models"

# Small, because tests wait for it.
RETRY_AFTER_S = 0.05


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str] = field(repr=False)  # Names in lower case.
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All messages' texts, one under the other."""
        return "\n".join(str(message["content"]) for message in self.body.get("messages", []))


@dataclass(frozen=True)
class Text:
    """An answer in words. `usage=None` leaves it out, as some servers do."""

    text: str
    finish_reason: str = "stop"
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    )
    model: str = ""
    # Between two words of a stream.
    pause_s: float = 0

    def send(self, handler: Handler, request: Request) -> None:
        if request.body.get("stream"):
            for event in self.events(request):
                handler.send_event(event)
                handler.model_server.stopped.wait(self.pause_s)
            handler.end_events()
        else:
            handler.send_json(200, self.body(request))

    def body(self, request: Request) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        usage = {"usage": self.usage} if self.usage else {}
        return self._head(request, "chat.completion") | {"choices": [choice]} | usage

    def events(self, request: Request) -> list[dict[str, Any]]:
        head = self._head(request, "chat.completion.chunk")
        pieces = re.findall(r"\S*\s*", self.text)
        deltas = [{"content": piece} for piece in pieces if piece]
        choices: list[dict[str, Any]] = [
            {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
        ]
        choices.append({"index": 0, "delta": {}, "finish_reason": self.finish_reason})
        events = [{**head, "choices": [choice]} for choice in choices]
        if self.usage and (request.body.get("stream_options") or {}).get("include_usage"):
            events.append({**head, "choices": [], "usage": self.usage})
        return events

    def _head(self, request: Request, kind: str) -> dict[str, Any]:
        model = self.model or request.body.get("model", "")
        return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": model}


@dataclass(frozen=True)
class Status:
    """An HTTP error in OpenAI's form. `retry_after_s=None` sends no such header."""

    status: int
    message: str = "Something is wrong."
    code: str | None = None
    param: str | None = None
    retry_after_s: float | None = RETRY_AFTER_S

    def send(self, handler: Handler, request: Request) -> None:
        error = {"message": self.message, "type": "error", "code": self.code, "param": self.param}
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        handler.send_json(self.status, {"error": error}, headers)


@dataclass(frozen=True)
class Slow:
    """Silence for some seconds (or until the server stops), and then the reply."""

    seconds: float
    then: Any = "Late."

    def send(self, handler: Handler, request: Request) -> None:
        handler.model_server.stopped.wait(self.seconds)
        as_reply(self.then).send(handler, request)


@dataclass(frozen=True)
class Stalled:
    """All words of a stream at once, then silence for some seconds (or until the server stops)."""

    text: str
    seconds: float = 120

    def send(self, handler: Handler, request: Request) -> None:
        for event in Text(self.text, usage=None).events(request)[:-1]:
            handler.send_event(event)
        handler.model_server.stopped.wait(self.seconds)
        handler.end_events()


@dataclass(frozen=True)
class CutOff:
    """The connection breaks in the middle of the answer: of its body, or of its stream.

    `cleanly` ends a stream as if it were complete, but without its last events.
    """

    text: str = "Half of this never arrives, whatever you do."
    cleanly: bool = False

    def send(self, handler: Handler, request: Request) -> None:
        answer = Text(self.text)
        if request.body.get("stream"):
            for event in answer.events(request)[:3]:
                handler.send_event(event)
            if self.cleanly:
                handler.end_chunks()
            handler.close_connection = True
        else:
            content = json.dumps(answer.body(request)).encode()
            handler.send_head(200, "application/json", len(content))
            handler.wfile.write(content[: len(content) // 2])
            handler.close_connection = True


@dataclass(frozen=True)
class NotJson:
    """Status 200 and a page for people, or a broken body, or an event that is no JSON."""

    content: str = "<html><body>Welcome to the proxy.</body></html>"
    content_type: str = "text/html"

    def send(self, handler: Handler, request: Request) -> None:
        content = self.content.encode()
        handler.send_head(200, self.content_type, len(content))
        handler.wfile.write(content)


@dataclass(frozen=True)
class Json:
    """Any body at all, with status 200."""

    body: Any

    def send(self, handler: Handler, request: Request) -> None:
        handler.send_json(200, self.body)


NO_CHOICES = Json({"id": "1", "object": "chat.completion", "created": 1, "choices": []})

# str | Text | Status | Slow | Stalled | CutOff | NotJson | Json | Callable[[Request], Reply]
Reply = Any


def as_reply(reply: Reply) -> Any:
    return Text(reply) if isinstance(reply, str) else reply


@lru_cache(maxsize=20_000)
def _word_vector(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimensions)


def embedding_of(text: str, dimensions: int) -> list[float]:
    """The sum of its words' own random directions, of unit length: like texts are near."""
    words = re.findall(r"\w+", text.lower()) or [""]
    summed = np.sum([_word_vector(word, dimensions) for word in words], axis=0)
    unit: list[float] = (summed / np.linalg.norm(summed)).tolist()
    return unit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model_server: ModelServer

    def setup(self) -> None:
        super().setup()
        self.model_server.connections.add(self.connection)

    def finish(self) -> None:
        self.model_server.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        """A client may hang up between two calls as well, which is no error."""
        with contextlib.suppress(ConnectionResetError):
            super().handle()

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._handle(json.loads(self.rfile.read(length) or b"{}"))

    def _handle(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body)
        try:
            as_reply(self.model_server.reply_to(request)).send(self, request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # The client gave up waiting.

    def send_head(self, status: int, content_type: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def send_event(self, event: Any) -> None:
        """The first one sends the head as well."""
        if not getattr(self, "_streaming", False):
            self._streaming = True
            self.send_head(200, "text/event-stream", None)
        self._send_chunk(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")

    def end_events(self) -> None:
        self.send_event("[DONE]")
        self.end_chunks()

    def end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self._streaming = False

    def _send_chunk(self, text: str) -> None:
        content = text.encode()
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `ModelServer.requests` has it."""


class ModelServer:
    """See the top of this module. Safe to be called from many threads and processes at once."""

    def __init__(self, *, dimensions: int = 384, api_key: str = "") -> None:
        self.dimensions = dimensions
        self.api_key = api_key
        self.models: Sequence[str] = ["test-model"]
        self.requests: list[Request] = []
        self.stopped = threading.Event()
        self.connections: set[socket.socket] = set()
        self._standing: Reply = "OK."
        self._scripts: dict[str, deque[Reply]] = {CHAT: deque(), EMBEDDINGS: deque()}
        self._lock = threading.Lock()

    def __enter__(self) -> ModelServer:
        handler = type("BoundHandler", (Handler,), {"model_server": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        # Connections that clients keep for later would go on being answered.
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, reply: Reply | Callable[[Request], Reply]) -> None:
        """The reply of every chat call without one in the script."""
        self._standing = reply

    def script(self, replies: Sequence[Reply], *, path: str = CHAT) -> None:
        """The next calls' replies, in turn."""
        with self._lock:
            self._scripts[path].extend(replies)

    def recover(self, path: str = CHAT) -> None:
        """Forget what is still scripted, and answer as usual."""
        with self._lock:
            self._scripts[path].clear()

    def requests_to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def reply_to(self, request: Request) -> Any:
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(request.path)
            scripted = script.popleft() if script else None
        sent_key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key and sent_key != self.api_key:
            return Status(401, f"Incorrect API key provided: {sent_key}.", "invalid_api_key")
        reply = scripted if scripted is not None else self._usual(request)
        while callable(reply) and not isinstance(reply, type):
            reply = reply(request)
        return reply

    def _usual(self, request: Request) -> Reply:
        if request.path == CHAT:
            return self._standing
        if request.path == EMBEDDINGS:
            return Json(self._embeddings(request.body))
        if request.path == MODELS:
            models = [{"id": name, "object": "model"} for name in self.models]
            return Json({"object": "list", "data": models})
        return Status(404, f"No such path: {request.path}", "not_found")

    def _embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        dimensions = body.get("dimensions") or self.dimensions
        data = [
            {"object": "embedding", "index": place, "embedding": embedding_of(text, dimensions)}
            for place, text in enumerate(texts)
        ]
        tokens = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}

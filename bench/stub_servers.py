"""Stub servers: a chat model that knows only its prompt, and a receiver of webhooks. Real HTTP.

The model's answers show what was recalled. It calls the first tool of a request, follows a schema,
and streams, in OpenAI's chat protocol. The receiver answers as a test or `fire` wants it to:

with Receiver() as receiver:
    receiver.script([500, DRIP, HANG_UP])    # In turn; then the standing answer, 204.
    ...
    assert receiver.heard[0].json["type"] == "mined"
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

HOST = "127.0.0.1"
PLACE = "Lisbon"
UNKNOWN = "I do not know."


def message_for(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request: the place, if any message names it."""
    messages = body["messages"]
    knows = PLACE in json.dumps(messages)
    place = PLACE if knows else "nowhere"
    has_answered = any(message["role"] == "tool" for message in messages)
    if body.get("tools") and not has_answered:
        function = body["tools"][0]["function"]
        names = list(function.get("parameters", {}).get("properties", ()))
        # Some libraries send the schema of the answer as a tool.
        arguments = json.dumps(dict.fromkeys(names, place))
        call = {"name": function["name"], "arguments": arguments}
        call = {"index": 0, "id": "call-1", "type": "function", "function": call}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if (body.get("response_format") or {}).get("type") == "json_schema":
        return {"role": "assistant", "content": json.dumps({"city": place})}
    return {"role": "assistant", "content": f"You live in {PLACE}." if knows else UNKNOWN}


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = message_for(body)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": "chatcmpl-1", "created": 1, "model": body.get("model", "")}
        if body.get("stream"):
            self._stream({**head, "object": "chat.completion.chunk"}, message, reason)
        else:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send("application/json", json.dumps(whole).encode())

    def _stream(self, head: dict[str, Any], message: dict[str, Any], reason: str) -> None:
        steps: tuple[tuple[dict[str, Any], str | None], ...] = ((message, None), ({}, reason))
        chunks = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            for delta, end in steps
        ]
        lines = [f"data: {event}\n\n" for event in (*map(json.dumps, chunks), "[DONE]")]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, content_type: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_args: object) -> None:
        """Do not log requests."""


@contextmanager
def played_model(handler: type[BaseHTTPRequestHandler] = _Model) -> Iterator[str]:
    """Run the server during the block; yields its base URL.

    Args:
        handler: Answers the requests instead, to measure other behaviour.
    """
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


HANG_UP = "hang up"
DRIP = "drip"
REDIRECT = "redirect"

# A status, or one of the above.
Reply = int | str


@dataclass(frozen=True)
class Heard:
    """An event that was sent; `reply` is what it got."""

    path: str
    headers: dict[str, str] = field(repr=False)  # Names in lower case.
    body: bytes
    reply: Reply

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """
    Attributes:
        url: Of the webhook; set inside the block.
        heard: All that was sent, in the order of its arrival.
        answer: What a request gets for which nothing is scripted.
    """

    url: str

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.answer: Reply = 204
        self.stopped = threading.Event()
        self._replies: deque[Reply] = deque()

    def script(self, replies: Iterable[Reply]) -> None:
        self._replies.extend(replies)

    def next_reply(self) -> Reply:
        return self._replies.popleft() if self._replies else self.answer

    def __enter__(self) -> Receiver:
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02])
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.receiver = receiver


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver = self.server.receiver
        reply = receiver.next_reply()
        receiver.heard.append(Heard(self.path, headers, body, reply))
        self._reply(reply, receiver)

    def _reply(self, reply: Reply, receiver: Receiver) -> None:
        if isinstance(reply, int):
            self._answer(reply)
        elif reply == REDIRECT:
            self._answer(302)
        elif reply == HANG_UP:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            # Never silent for long, and never done.
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not receiver.stopped.wait(0.02):
                try:
                    self.wfile.write(b"x")
                except OSError:
                    break
            self.close_connection = True

    def _answer(self, status: int) -> None:
        body = b"" if status == 204 else b"a word\nof why\x00"
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing: the output is for tests and figures."""

"""A real HTTP server that receives webhooks' events, and answers as a test or `fire` wants it to.

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
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

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

"""A real HTTP server that receives events, and answers as a test wants it to.

with Receiver() as receiver:
    receiver.script([500, DRIP, HANG_UP])    # In turn; then 204 for ever.
    ...
    assert receiver.heard[0].json["type"] == "mined"
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Heard:
    path: str
    headers: dict[str, str] = field(repr=False)  # Names in lower case.
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


HANG_UP = "hang up"
DRIP = "drip"
REDIRECT = "redirect"


class Receiver:
    def __init__(self):
        self.heard = []
        self.stopped = threading.Event()
        self._replies = deque()

    def script(self, replies):
        self._replies.extend(replies)

    def next_reply(self):
        return self._replies.popleft() if self._replies else 204

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.receiver = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02])
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver = self.server.receiver
        receiver.heard.append(Heard(self.path, headers, body))
        self.reply(receiver.next_reply(), receiver)

    def reply(self, reply, receiver):
        if reply == HANG_UP:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif reply == DRIP:
            # Never silent for long, and never done.
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not receiver.stopped.wait(0.02):
                try:
                    self.wfile.write(b"x")
                except OSError:
                    break
            self.close_connection = True
        else:
            self.answer(302 if reply == REDIRECT else reply)

    def answer(self, status):
        body = b"" if status == 204 else b"a word\nof why\x00"
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """The tests' output is for tests."""

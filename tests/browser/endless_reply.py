"""A streamed reply that goes on for as long as a test wants to watch it."""

from __future__ import annotations

import threading

from tests.model_server import Text

# Longer than any browser assertion waits.
PATIENCE_S = 60
# Between two words. The server shows what has come whenever more comes.
PAUSE_S = 0.05


class Gated:
    """Streams `first`, then a word now and then until `go_on()`, then `rest`.

    Leaving the `with` block is `go_on()` too, so that a failed test leaves no reply behind.
    """

    def __init__(self, first: str, rest: str) -> None:
        self._first, self._rest = first, rest
        self._gate = threading.Event()

    def __enter__(self) -> Gated:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.go_on()

    def go_on(self) -> None:
        self._gate.set()

    def send(self, handler, request) -> None:
        self._stream(handler, request, self._first)
        for _ in range(int(PATIENCE_S / PAUSE_S)):
            if self._gate.wait(PAUSE_S):
                break
            self._stream(handler, request, "and ")
        self._stream(handler, request, self._rest, ends=True)
        handler.end_events()

    def _stream(self, handler, request, text: str, *, ends: bool = False) -> None:
        events = Text(text).events(request)
        for event in events if ends else [each for each in events if not _ends(each)]:
            handler.send_event(event)


def _ends(event) -> bool:
    return not event["choices"] or event["choices"][0]["finish_reason"] is not None

"""Stop a long-running command on Ctrl-C, `kill` or a closed terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self


class Stopped(Exception):
    """Somebody asked to stop."""


class StopSignals:
    """Inside this block the first signal to stop counts; any more change nothing.

    It is only noted, for `check` to raise between two steps, until `then` says what to do.
    Raising where the program happens to be could leave a step half done.
    """

    def __init__(self) -> None:
        self._act: Callable[[], object] | None = None
        self._asked = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` has a program outlive its terminal by ignoring this signal.
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # As it was given to us.

    @property
    def is_asked(self) -> bool:
        return self._asked

    def check(self) -> None:
        """
        Raises:
            Stopped: a signal has come.
        """
        if self._asked:
            raise Stopped

    def then(self, act: Callable[[], object]) -> None:
        """From now on, do this; at once if the signal has come already."""
        self._act = act
        if self._asked:
            act()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            if self._act is not None:
                self._act()

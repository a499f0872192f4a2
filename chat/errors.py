"""What can go wrong in a chat. Each message says what was wrong and what to do."""

from __future__ import annotations


class ChatError(Exception):
    """Something the person at the keyboard can understand and mend."""


class BadText(ChatError):
    """What was written cannot be sent."""


class StillWriting(ChatError):
    def __init__(self) -> None:
        super().__init__("The reply is still being written. Wait for it, or stop it first.")


class NothingToRetry(ChatError):
    def __init__(self) -> None:
        super().__init__("There is no reply here that could be tried again.")

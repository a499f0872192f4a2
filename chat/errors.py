"""What can go wrong in a chat. Each message says what was wrong and what to do."""

from __future__ import annotations


class ChatError(Exception):
    """Something the person at the keyboard can understand and mend."""


class BadText(ChatError):
    """What was written cannot be sent."""


class StillWriting(ChatError):
    def __init__(self) -> None:
        super().__init__("The reply is still being written. Wait for it, or stop it first.")


class TooManyReplies(ChatError):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} replies of yours are being written already. Wait for one of them, or stop it."
        )


class NothingToRetry(ChatError):
    def __init__(self) -> None:
        super().__init__(
            "This is no longer the last reply, so it cannot be tried again. Reload the page."
        )

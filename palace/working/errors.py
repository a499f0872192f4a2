"""Errors of working memory."""

from __future__ import annotations

from palace.errors import PalaceError


class TooMuch(PalaceError):
    """The fields or the entry would be too large; nothing was changed."""

    code = "too_much"


class NamespaceFull(PalaceError):
    """The namespace is full; nothing was changed."""

    code = "namespace_full"

    def __init__(self, namespace: object, most: int) -> None:
        super().__init__(
            f"{namespace} holds {most} entries, which is all it may. Delete one, or wait until "
            "one expires; an existing key can still be set."
        )


class NotItsOwn(PalaceError):
    """The entry is in another namespace, where it can only be read."""

    code = "not_its_own"

    def __init__(self, path: object, own: object) -> None:
        super().__init__(
            f"{path} is not in {own}, and only entries in there can be written or deleted from "
            "there. Others can be read by their full path."
        )


class WorkingMemoryAway(PalaceError):
    """Redis does not respond; the operation may or may not have happened."""

    code = "working_memory_away"

    def __init__(self) -> None:
        super().__init__(
            "Working memory is unavailable at the moment (Redis, which stores it, is down or "
            "full). Try again in a moment."
        )

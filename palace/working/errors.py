"""What can go wrong with working memory."""

from __future__ import annotations

from palace.errors import PalaceError


class TooMuch(PalaceError):
    """More than a conversation's fields, or an entry, may hold; nothing was changed."""

    code = "too_much"


class NamespaceFull(PalaceError):
    """A namespace has as many entries as it may; nothing was changed."""

    code = "namespace_full"

    def __init__(self, namespace: object, most: int) -> None:
        super().__init__(
            f"{namespace} holds {most} entries, which is all it may. Delete one, or wait until "
            "one expires; a key that is there already can be set anew."
        )


class NotItsOwn(PalaceError):
    """Entries are written and deleted in one's own namespace only."""

    code = "not_its_own"

    def __init__(self, path: object, own: object) -> None:
        super().__init__(
            f"{path} is not in {own}, and only entries in there can be written or deleted from "
            "there. Others can be read by their full path."
        )


class WorkingMemoryAway(PalaceError):
    """Redis does not answer; whatever was asked may or may not have been done."""

    code = "working_memory_away"

    def __init__(self) -> None:
        super().__init__(
            "Working memory does not answer at the moment (Redis, which keeps it, is away or "
            "full). Try again in a moment."
        )

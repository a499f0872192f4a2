"""Errors of the palace, and their sentences. Each says what is wrong and what to do.

A program can catch them before Django is set up, so this imports none of it.
"""

from __future__ import annotations

from language.english.grammatical_person import to_second_person


class PalaceError(Exception):
    """An error that the caller can correct; `code` is stable, for programs."""

    code = "palace_error"


class BadInput(PalaceError):
    """An invalid argument; the message says which, and what is allowed."""

    code = "bad_input"


class BadPointer(PalaceError):
    code = "bad_pointer"

    def __init__(self, text: str) -> None:
        shown = "".join(sign for sign in text[:60] if sign.isprintable()).strip()
        problem = f"“{shown}” is no pointer" if shown else "There is no pointer here"
        super().__init__(f"{problem}; write it like § W-042/R-11/D-007.")


class EmptyQuery(PalaceError):
    code = "empty_query"

    def __init__(self) -> None:
        super().__init__("The question is empty; write what you want to find.")


class UnknownRecipe(PalaceError):
    code = "unknown_recipe"


class BadRecipe(PalaceError):
    """An invalid list of stages; the message says which stage, and what is allowed."""

    code = "bad_recipe"


class BadImport(PalaceError):
    """A file that is not a valid export in a supported format."""

    code = "bad_import"


class EmbeddingMismatch(PalaceError):
    """The deployment's embedding model is not the one this palace was embedded with."""

    code = "embedding_mismatch"


class NoSuchFact(PalaceError):
    code = "no_such_fact"

    def __init__(self, memory: object) -> None:
        super().__init__(
            f"There is no memory {memory} here, or it was deleted; list those there are to find it."
        )


class FactConflict(PalaceError):
    """Another fact is active where a subject can have only one.

    Attributes:
        active: Its text.
    """

    code = "fact_conflict"

    def __init__(self, active: str) -> None:
        self.active = active
        super().__init__(
            f"“{active}” is active in its place; delete that first, or leave this as it is."
        )

    def for_reader(self) -> str:
        """The error as a page shows it, addressed to the reader."""
        return str(FactConflict(to_second_person(self.active)))


class BadFilter(PalaceError):
    """An invalid filter."""

    code = "bad_filter"


class TooMuch(PalaceError):
    """The fields or the entry would be too large; nothing was changed."""

    code = "too_much"


class QuotaExceeded(PalaceError):
    """The palace's quota is used up; nothing was stored."""

    code = "quota_exceeded"

    def __init__(self, what: str, most: int, used: int, more: int) -> None:
        needs = f" {more:,} more do not fit." if more else ""
        super().__init__(
            f"A palace on this server may hold {most:,} {what}, and this one has {used:,}.{needs} "
            "Delete messages for good (those in the trash count), or ask who runs the server for "
            "more."
        )


class StorageFull(PalaceError):
    """A disk is full or read-only; nothing was stored."""

    code = "storage_full"

    def __init__(self) -> None:
        super().__init__(
            "The server's disk is full or read-only, so nothing was stored. Send it again once it "
            "takes more."
        )


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


class VectorStoreAway(PalaceError):
    """The store of facts' vectors does not respond; Postgres, which has everything else, does.

    Attributes:
        where: Its address or folder, for the operator: users read the message.
    """

    code = "vector_store_error"

    def __init__(self, store: str, where: str, why: str) -> None:
        self.where = where
        super().__init__(f"The vector store ({store}) does not answer ({why}).")

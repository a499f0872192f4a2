"""The rows that what is running may see and write, as the database is to enforce it.

No row is accessible unless one of the context managers here has opened it. The engine
(`config.database`) makes each connection's session agree before each statement.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import sql

# They own nothing, and only the last one sees all rows. See `isolation.policies`.
PALACE, PERSON, SWEEP = "loci_palace", "loci_person", "loci_sweep"
# The account that the settings connect as: it owns the tables.
LOGIN = ""


# Work that crosses palaces, by name. Nothing else runs as the role that sees all rows.
SWEEPS: dict[str, str] = {
    "what waits": "Periodic tasks look in every palace for what a killed worker left.",
    "whose it is": "A task has the key of a row; which palace it is of is looked up.",
    "vectors": "Embedding what has no vector, and changing to another model, palace by palace.",
    "trash": "Which palaces have something in the trash that is due to be purged.",
    "keeping": "Which palaces have a wing that does not keep everything.",
    "dreams": "Which palaces are to dream tonight.",
    "webhooks": "Sending what is due, to any webhook of any owner.",
    "deliveries": "Forgetting old deliveries of webhooks.",
    "keys of Redis": "Which of the palaces that Redis has keys of are no more.",
    "spools": "Which copies of imported files no import needs any more.",
    "answers": "Forgetting what was answered to programs a day ago.",
    "audit": "Forgetting old lines of what programs changed.",
    "integrity": "`manage.py audit` reads palaces one after the other, and what is of none.",
    "sent": "Forgetting what was sent to models a year ago.",
    "sessions": "Forgetting sessions that have ended.",
    "rotation": "`manage.py rotate_keys` encrypts stored secrets of all accounts again.",
    "secrets": "`manage.py find_secrets` reads messages of all palaces, and tags some.",
    "metrics": "Counting what waits, in all palaces together.",
    "connected apps": "Forgetting codes and tokens that have expired, and apps nobody connected.",
    "admin": "The admin site, for operators: accounts, keys, counts; no words of a memory.",
}

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Access:
    """
    Attributes:
        role: What statements run as.
        palace: The one accessible palace; 0: none.
        owner: Whose account; 0: nobody's.
        subject: Of the owner's palaces only the one with this name; None: all.
        secret: A session's key, or the digest of an API key, code or token: its bearer may see
            its row.
    """

    role: str = PERSON
    palace: int = 0
    owner: int = 0
    subject: str | None = None
    secret: str = ""


NO_ACCESS = Access()
# What a new session has.
_FRESH = Access(role=LOGIN)
# Whatever the session has now.
_AS_IT_IS = Access(role="as it is")

_access: ContextVar[Access | None] = ContextVar("access", default=None)


class _Unopened:
    """The access where nothing was opened, in all threads of this process."""

    access = NO_ACCESS


def allow_all_by_default() -> None:
    """What opens nothing runs as the owner of the tables: for tests and benchmarks.

    Doors, tasks and commands open their own access, which this does not widen.
    """
    _Unopened.access = _FRESH


def deny_all_by_default() -> None:
    """What opens nothing sees no row, as when a process begins."""
    _Unopened.access = NO_ACCESS


def current() -> Access:
    return _access.get() or _Unopened.access


@contextmanager
def use(access: Access) -> Iterator[None]:
    before = _access.get()
    _access.set(access)
    try:
        yield
    finally:
        # Not by a token: what is awaited within may have run in a copy of this context.
        _access.set(before)


def enter(access: Access) -> None:
    """Set the access until the surrounding block ends, once a door knows its caller."""
    _access.set(access)


def iterate_with(pieces: Generator[Item], access: Access) -> Generator[Item]:
    """The pieces, each made with this access, in whatever thread they are taken."""
    try:
        while True:
            with use(access):
                try:
                    piece = next(pieces)
                except StopIteration:
                    return
            yield piece
    finally:
        with use(access):
            pieces.close()


@contextmanager
def deny_all() -> Iterator[None]:
    """No row is accessible: as a request or a task begins, before it is known whose it is."""
    with use(NO_ACCESS):
        yield


@contextmanager
def open_account(owner_id: int, subject: str | None = None) -> Iterator[None]:
    """The account's rows, and its palaces.

    Args:
        subject: Only the palace with this name, whether it exists yet or not; None: all.
    """
    with use(Access(PERSON, owner=owner_id, subject=subject)):
        yield


@contextmanager
def open_rows(palace_id: int, owner_id: int) -> Iterator[None]:
    """One palace, and its owner's account; see `palace.models.open_palace`."""
    with use(Access(PALACE, palace=palace_id, owner=owner_id)):
        yield


@contextmanager
def with_secret(secret: str) -> Iterator[None]:
    """The one session, API key, code or token that is known by this secret."""
    with use(Access(PERSON, secret=secret)):
        yield


@contextmanager
def sweep(name: str) -> Iterator[None]:
    """All palaces, for work that `SWEEPS` lists by this name."""
    if name not in SWEEPS:
        raise ValueError(f"{name!r} is not listed in isolation.row_access.SWEEPS.")
    with use(Access(SWEEP)):
        yield


@contextmanager
def maintenance() -> Iterator[None]:
    """The account that owns the tables: migrations, and what an operator does by hand."""
    with use(_FRESH):
        yield


@contextmanager
def unchanged() -> Iterator[None]:
    """For statements that end a transaction, and see no row."""
    with use(_AS_IT_IS):
        yield


def apply(connection: psycopg.Connection[Any]) -> None:
    """Make the session's role and settings those of what is running; a round trip if they differ.

    With SET, which takes no snapshot: a transaction's isolation level may still be chosen.
    """
    wanted, known = current(), getattr(connection, "_loci_access", _FRESH)
    if wanted is known or wanted == known or wanted is _AS_IT_IS:
        return
    # Whatever happens: unknown until it is done.
    forget(connection)
    with psycopg.Cursor(connection) as cursor:
        cursor.execute(_statement(wanted, known))
    setattr(connection, "_loci_access", wanted)  # noqa: B010 - psycopg knows of no such attribute.


def forget(connection: psycopg.Connection[Any] | None) -> None:
    """After a rollback the session may have other settings than those that were made."""
    if connection is not None:
        setattr(connection, "_loci_access", None)  # noqa: B010 - as above.


def _statement(wanted: Access, known: Access | None) -> str:
    parts = []
    if known is None or wanted.role != known.role:
        parts.append(f"SET ROLE {wanted.role or 'NONE'}")
    if known is None or wanted.palace != known.palace:
        parts.append(f"SET loci.palace = '{wanted.palace or ''}'")
    if known is None or wanted.owner != known.owner:
        parts.append(f"SET loci.owner = '{wanted.owner or ''}'")
    if known is None or wanted.subject != known.subject:
        subject = "" if wanted.subject is None else f"={wanted.subject}"
        parts.append(f"SET loci.subject = {_quoted(subject)}")
    if known is None or wanted.secret != known.secret:
        parts.append(f"SET loci.secret = {_quoted(wanted.secret)}")
    return "; ".join(parts)


def _quoted(text: str) -> str:
    return sql.Literal(text).as_string() if text else "''"

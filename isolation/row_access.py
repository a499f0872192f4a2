"""The rows that the current code may read and write; the database enforces it.

No row is accessible unless a context manager of this module has opened it. The engine
(`config.database`) applies the current access to its session before each statement, and with it how
long the statement may wait for a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import pq, sql

# Roles that own no table; only the last one sees all rows. See `isolation.policies`.
PALACE, PERSON, SWEEP = "loci_palace", "loci_person", "loci_sweep"
# The account in DATABASE_URL, which owns the tables.
LOGIN = ""


# Work on several palaces, by name. Nothing else runs as the role that sees all rows.
SWEEPS: dict[str, str] = {
    "what waits": "Periodic tasks look in every palace for work that a killed worker left.",
    "whose it is": "A task has the key of a row, and looks up its palace.",
    "vectors": "Embedding texts without a vector, and changing the model, palace by palace.",
    "trash": "Which palaces have expired trash.",
    "keeping": "Which palaces have a wing with retention rules.",
    "dreams": "Which palaces have a dream due.",
    "webhooks": "Sending due deliveries to the webhooks of all owners.",
    "deliveries": "Deleting old deliveries of webhooks.",
    "keys of Redis": "Which palaces with keys in Redis were deleted.",
    "spools": "Which copies of imported files no import needs.",
    "answers": "Deleting responses to programs after a day.",
    "audit": "Deleting old lines of the log of changes by programs.",
    "integrity": "`manage.py audit` reads all palaces, and rows of no palace.",
    "sent": "Deleting records of what was sent to models, after a year.",
    "sessions": "Deleting expired sessions.",
    "rotation": "`manage.py rotate_keys` encrypts stored secrets of all accounts again.",
    "secrets": "`manage.py find_secrets` reads messages of all palaces, and tags some.",
    "metrics": "Counting unfinished work in all palaces together.",
    "connected apps": "Deleting expired codes and tokens, and apps that nobody connected.",
    "admin": "The admin site, for operators: accounts, keys, counts; no text of a memory.",
}

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Access:
    """
    Attributes:
        role: The database role of statements.
        palace: The one accessible palace; 0: none.
        owner: The accessible account; 0: none.
        subject: Name of the only accessible palace of the owner; None: all of them.
        secret: A session's key, or the digest of an API key, code or token, which opens its
            own row.
    """

    role: str = PERSON
    palace: int = 0
    owner: int = 0
    subject: str | None = None
    secret: str = ""


NO_ACCESS = Access()
# The access of a new session.
_FRESH = Access(role=LOGIN)
_IDLE = pq.TransactionStatus.IDLE
_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
# Leave the session as it is.
_AS_IT_IS = Access(role="as it is")

_access: ContextVar[Access | None] = ContextVar("access", default=None)
# In seconds; None: as long as it takes.
_lock_wait_s: ContextVar[float | None] = ContextVar("lock_wait_s", default=None)


class _Unopened:
    """The access of code that has opened none, in all threads of this process."""

    access = NO_ACCESS


def allow_all_by_default() -> None:
    """Code that opens no access runs as the owner of the tables: for tests and benchmarks.

    APIs, pages, tasks and commands open their own access, which this does not widen.
    """
    _Unopened.access = _FRESH


def deny_all_by_default() -> None:
    """Code that opens no access sees no row: the default."""
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
        # Not by a token: code awaited in the block may have run in a copy of this context.
        _access.set(before)


def enter(access: Access) -> None:
    """Set the access until the surrounding block ends, once the caller is known."""
    _access.set(access)


def iterate_with(pieces: Generator[Item], access: Access) -> Generator[Item]:
    """Yield the pieces; each is produced with this access, whichever thread asks for it."""
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
    """No row is accessible: for the start of a request or task, before its owner is known."""
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
    """Only the session, API key, code or token with this secret."""
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
    """Run as the account that owns the tables: for migrations and operators' commands."""
    with use(_FRESH):
        yield


@contextmanager
def lock_wait(seconds: float | None) -> Iterator[None]:
    """Limit how long a statement in the block waits for a lock, of a palace or any other row.

    After that it fails with an OperationalError, 55P03. A new thread begins without a limit.

    Args:
        seconds: None for no limit.
    """
    before = _lock_wait_s.get()
    _lock_wait_s.set(seconds)
    try:
        yield
    finally:
        _lock_wait_s.set(before)


@contextmanager
def unchanged() -> Iterator[None]:
    """Keep the session's access: for statements that end a transaction and see no row."""
    with use(_AS_IT_IS):
        yield


def apply(connection: psycopg.Connection[Any]) -> None:
    """Apply the current access and lock wait to the session; costs a round trip if they differ.

    Uses SET, which takes no snapshot, so a transaction's isolation level can still be chosen.
    """
    wanted, known = current(), getattr(connection, "_loci_access", _FRESH)
    wait_s, known_s = _lock_wait_s.get(), getattr(connection, "_loci_lock_wait_s", None)
    is_known = wait_s == known_s and (wanted is known or wanted == known)
    if is_known or wanted is _AS_IT_IS:
        return
    # If this fails, the session's state is unknown.
    forget(connection)
    parts = _of_access(wanted, known)
    if known is None or wait_s != known_s:
        parts.append(_of_lock_wait(wait_s))
    statement = "; ".join(parts).encode()
    run(connection, lambda: connection.pgconn.exec_(statement))
    setattr(connection, "_loci_access", wanted)  # noqa: B010 - psycopg knows of no such attribute.
    setattr(connection, "_loci_lock_wait_s", wait_s)  # noqa: B010 - as above.


def run(
    connection: psycopg.Connection[Any], statement: Callable[[], pq.abc.PGresult]
) -> pq.abc.PGresult:
    """Run a statement by libpq itself, in a transaction where a cursor of psycopg would begin one.

    Raises:
        psycopg.Error: as a cursor would.
    """
    if not connection.autocommit and connection.pgconn.transaction_status == _IDLE:
        _checked(connection, connection.pgconn.exec_(b"BEGIN"))
    return _checked(connection, statement())


def _checked(connection: psycopg.Connection[Any], result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status in _DONE:
        return result
    error = psycopg.errors.error_from_result(result, connection.info.encoding)
    # Without a code the server is gone: it has not answered.
    raise error if error.sqlstate else psycopg.OperationalError(str(error))


def forget(connection: psycopg.Connection[Any] | None) -> None:
    """Call after a rollback, which may have reverted the session's settings."""
    if connection is not None:
        setattr(connection, "_loci_access", None)  # noqa: B010 - as above.


def _of_lock_wait(seconds: float | None) -> str:
    return f"SET lock_timeout TO {'DEFAULT' if seconds is None else round(seconds * 1000)}"


def _of_access(wanted: Access, known: Access | None) -> list[str]:
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
    return parts


def _quoted(text: str) -> str:
    return sql.Literal(text).as_string() if text else "''"

"""What the database can store: checks for texts, normalisation of ids, labels, times, questions."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

# Lengths of the columns for external ids, and for titles and names.
ID_LENGTH = 200
LABEL_LENGTH = 200
# Of a question. Programs are refused longer ones; of a message that is asked for as a whole, as in
# a chat, the beginning counts.
MOST_QUERY_CHARS = 4000

# Reasons for skipping a message, as shown in receipts.
EMPTY = "empty message"
UNSTORABLE = "holds a character that cannot be stored (NUL or a lone surrogate)"
# Of a message: the next month and every time zone's clock exist there as well.
FIRST_TIME = datetime(1, 2, 1, tzinfo=UTC)
LAST_TIME = datetime(9999, 11, 29, tzinfo=UTC)


def is_storable(text: str) -> bool:
    """Whether Postgres can store the text byte for byte: UTF-8 without NUL."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable_label(text: str) -> str:
    """A title or name normalised for a column; unlike a message's text it may be changed."""
    return replace_unstorable(text).strip()[:LABEL_LENGTH]


def replace_unstorable(text: str) -> str:
    """The text with a mark for each character that Postgres cannot store."""
    return text.encode(errors="replace").decode().replace("\0", "�")


def storable_id(text: str) -> str:
    """An id for a column: one that does not fit becomes its beginning and a digest."""
    if len(text) <= ID_LENGTH and is_storable(text):
        return text
    return f"{storable_label(text)[:100]}~{digest(text)}"


def normalize_query(text: str) -> str:
    """The question as parsed and traced: stripped, truncated, without invalid characters."""
    return text.replace("\0", " ").encode(errors="ignore").decode().strip()[:MOST_QUERY_CHARS]


def storable_time(moment: datetime) -> datetime:
    """The moment in UTC, clamped to a range in which pages can compute.

    Times beyond are mistakes of the program that wrote them.
    """
    try:
        return min(max(moment.astimezone(UTC), FIRST_TIME), LAST_TIME)
    except OverflowError:
        return LAST_TIME if moment.year > 1 else FIRST_TIME


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

"""What the database can hold to the byte, and how ids and labels are made to fit it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

# Of the columns that hold other systems' ids, and of those for titles and names.
ID_LENGTH = 200
LABEL_LENGTH = 200

# Why a message is not kept, in the words of receipts.
EMPTY = "empty message"
UNSTORABLE = "holds a character that cannot be stored (NUL or a lone surrogate)"


def is_storable(text: str) -> bool:
    """Whether Postgres can hold the text to the byte: UTF-8 without NUL."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable_label(text: str) -> str:
    """A title or a name, fit for a column. Unlike a message's text it need not stay to the byte."""
    return text.encode(errors="replace").decode().replace("\0", "�").strip()[:LABEL_LENGTH]


def storable_id(text: str) -> str:
    """An id fit for a column: one too long for it is replaced by its beginning and a digest."""
    if len(text) <= ID_LENGTH and is_storable(text):
        return text
    return f"{storable_label(text)[:100]}~{digest(text)}"


def storable_time(moment: datetime) -> datetime:
    """In UTC; what falls out of the calendar there, at either end, is moved to that end."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return ends[moment.year > 1]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

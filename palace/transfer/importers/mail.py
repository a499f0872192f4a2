"""E-mail: mbox files and single messages (.eml). A thread becomes a conversation."""

from __future__ import annotations

import email
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime

from language.storable import digest
from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
    as_id,
    label,
)
from palace.transfer.importers.files import Archive, Format, Head, Part, named
from palace.transfer.importers.json_stream import LARGEST_ITEM
from palace.transfer.importers.message_forms import text_of

SOURCE = "mail"
ONLY_FILES = "holds no words, only files"
JUNK = "is in the folder for spam or in the trash"
TOO_LARGE = "is larger than 128 MB"

_HEADER = re.compile(r"([!-9;-~]{1,70}):(?:[ \t]|$)")
_ADDRESSED = {"date", "subject", "to", "message-id", "received"}
# Headers beyond this are no names, subjects or ids; their parsers may be slow.
_LONGEST_HEADER = 10_000
_ID = re.compile(r"<([^<>\s]{1,500})>")
_REPLY = re.compile(r"(?:(?:re|aw|sv|rv|fwd?|wg|tr|antw)(?:\[\d{1,3}\])?: ?)", re.IGNORECASE)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, MessageError, OverflowError)
# The most characters that are kept waiting for more messages of their threads.
_MOST_WAITING = 32 << 20


def _recognises(head: Head) -> bool:
    lines = head.text.split("\n", 100)[:100]
    if lines[0].startswith("From ") and len(lines) > 1:
        return _HEADER.match(lines[1]) is not None
    names = set()
    for line in lines:
        found = _HEADER.match(line)
        if found:
            names.add(found[1].lower())
        elif line[:1] not in (" ", "\t"):
            break
    return "from" in names and bool(names & _ADDRESSED)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield from _Threads(latest).conversations(_mails(part))


def of_archive(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    """The threads of all files together."""

    def mails() -> Iterator[bytes | None]:
        for name in _members(archive.members):
            with archive.part(name) as part:
                yield from _mails(part)

    yield from _Threads(latest).conversations(mails())


_members = named(r".+\.(mbox|mbx|eml)|mbox")
FORMAT = Format(
    SOURCE,
    "e-mail",
    where="An .mbox file, as Google Takeout, Thunderbird and Apple Mail write it, an .eml file, or "
    "a zip or folder of them.",
    becomes="each thread",
    skips="spam and trash, attachments, mails without words",
    recognises=_recognises,
    members=_members,
    conversations=conversations,
    of_archive=of_archive,
)


def _mails(part: Part) -> Iterator[bytes | None]:
    """Each mail as it was sent; None for one that is too large."""
    lines: list[bytes] = []
    size, is_after_blank, is_mbox = 0, True, False
    while line := part.stream.readline(LARGEST_ITEM):
        if is_after_blank and line.startswith(b"From "):
            yield from _mail(lines, size, is_mbox=is_mbox)
            lines, size, is_mbox = [], 0, True
        else:
            size += len(line)
            if size <= LARGEST_ITEM:
                lines.append(line)
        is_after_blank = not line.strip()
    yield from _mail(lines, size, is_mbox=is_mbox)


def _mail(lines: list[bytes], size: int, *, is_mbox: bool) -> Iterator[bytes | None]:
    if size > LARGEST_ITEM:
        yield None
        return
    if is_mbox and lines and not lines[-1].strip():
        lines.pop()  # The empty line between two mails.
    if content := b"".join(lines):
        # A line in an mbox file that begins with “From ” is quoted once.
        yield _QUOTED_FROM.sub(rb"\1", content) if is_mbox else content


class _Threads:
    """Gathers mails by thread, while there is room for them."""

    def __init__(self, latest: datetime) -> None:
        self._latest = latest
        self._threads: dict[str, tuple[str, Gatherer]] = {}
        self._waiting = 0

    def conversations(self, mails: Iterable[bytes | None]) -> Iterator[Conversation]:
        """A thread that goes on after it was yielded is continued in another conversation with the
        same id, and is filed as one.
        """
        for content in mails:
            if content is None:
                self._gatherer("~", "").skip(TOO_LARGE)
                continue
            try:
                self._add(content)
            except RecursionError:
                self._gatherer("~", "").skip(UNKNOWN_FORM)
            if self._waiting > _MOST_WAITING:
                yield from self._done()
        yield from self._done()

    def _done(self) -> Iterator[Conversation]:
        for name, (title, gatherer) in self._threads.items():
            turns = sorted(gatherer.take_turns(), key=lambda turn: turn.said_at)
            yield gatherer.conversation(Transcript(SOURCE, name, title, tuple(turns)))
        self._threads.clear()
        self._waiting = 0

    def _gatherer(self, thread: str, subject: str) -> Gatherer:
        return self._threads.setdefault(thread, (label(subject), Gatherer()))[1]

    def _add(self, content: bytes) -> None:
        mail = email.message_from_bytes(content)
        subject = _without_replies(_header(mail, "Subject"))
        own = _ids(mail, "Message-ID") or [f"~{digest(content.decode(errors='replace'))}"]
        thread = (_ids(mail, "References") or _ids(mail, "In-Reply-To") or own)[0]
        gatherer = self._gatherer(as_id(thread), subject)
        labels = {each.strip() for each in _header(mail, "X-Gmail-Labels").split(",")}
        if labels & {"Spam", "Trash"}:
            gatherer.skip(JUNK)
            return
        text, page = _words(mail, gatherer)
        if not text.strip():
            gatherer.skip(ONLY_FILES)
            return
        name, address = parseaddr(_header(mail, "From"))
        self._waiting += len(text) + len(page)
        said_at = _date(mail) or self._latest
        kept_with = {"mail": {"subject": _header(mail, "Subject"), "to": _header(mail, "To")}}
        if page:
            kept_with["mail"]["html"] = page
        gatherer.add(as_id(own[0]), "user", text, said_at, name or address, kept_with)


def _header(mail: Message, name: str) -> str:
    """A header in one line, decoded; empty if it is missing or too long."""
    raw = str(mail.get(name, ""))
    if len(raw) > _LONGEST_HEADER:
        return ""
    with suppress(*_MALFORMED):
        raw = str(make_header(decode_header(raw)))
    return " ".join(raw.split())


def _ids(mail: Message, name: str) -> list[str]:
    return _ID.findall(str(mail.get(name, ""))[:_LONGEST_HEADER])


def _date(mail: Message) -> datetime | None:
    with suppress(*_MALFORMED):
        date = parsedate_to_datetime(_header(mail, "Date"))
        return date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC)
    return None


def _without_replies(subject: str) -> str:
    at = 0
    while found := _REPLY.match(subject, at):
        at = found.end()
    return subject[at:]


def _words(mail: Message, gatherer: Gatherer) -> tuple[str, str]:
    """The text, and the page that it was taken from, if there is no other text."""
    texts: list[str] = []
    pages: list[str] = []
    for part in mail.walk():
        if part.is_multipart():
            continue
        kind = part.get_content_type()
        is_attached = part.get_content_disposition() == "attachment"
        if is_attached or kind not in ("text/plain", "text/html"):
            gatherer.leave_out("file")
        else:
            (pages if kind == "text/html" else texts).append(_decoded(part))
    text = "\n\n".join(text for text in texts if text.strip())
    if text:
        return text, ""
    page = "\n".join(pages)
    return text_of(page), page


def _decoded(part: Message) -> str:
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = "utf-8"
    with suppress(*_MALFORMED):
        charset = part.get_content_charset() or "utf-8"
    for encoding in (charset, "utf-8"):
        with suppress(*_MALFORMED):
            return content.decode(encoding).removesuffix("\n").removesuffix("\r")
    return content.decode("latin-1").removesuffix("\n").removesuffix("\r")

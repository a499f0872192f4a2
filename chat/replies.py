"""Send a message and its text files, edit it, and retry its reply.

A reply is a row from the start, marked as being written; a conversation has one at a time. Each
text file becomes a separate message, verbatim.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from chat import live_reply, reply_writer
from chat.mining_queue import SOURCE, is_automatic, mark_due
from chat.models import Agent, Conversation, Message, MessageQuerySet, one_line, title_of
from language.errors import QuotaExceeded
from language.storable import is_storable
from palace.curation.trash import trash_drawers
from palace.models import Drawer, Palace
from palace.storage import check_quota, palace_quota

MOST_FILES = 5
# Bytes of one file.
LARGEST_FILE = 200_000


class BadFile(Exception):
    """A file cannot be sent; the message says why."""


@dataclass(frozen=True, slots=True)
class TextFile:
    name: str
    text: str


def read_files(uploads: Sequence[UploadedFile[bytes]]) -> list[TextFile]:
    """The files as text; empty ones are left out.

    Raises:
        BadFile: there are too many, or one is too large or is no text.
    """
    if len(uploads) > MOST_FILES:
        raise BadFile(f"These are {len(uploads)} files; attach at most {MOST_FILES} at once.")
    files = [_read(upload) for upload in uploads]
    return [file for file in files if file.text.strip()]


def _read(upload: UploadedFile[bytes]) -> TextFile:
    # Browsers on some systems send a whole path.
    name = one_line(PurePath((upload.name or "").replace("\\", "/")).name) or "file.txt"
    if (upload.size or 0) > LARGEST_FILE:
        raise BadFile(
            f"{name} has {(upload.size or 0) // 1000:,} kB; attach files of up to"
            f" {LARGEST_FILE // 1000:,} kB."
        )
    try:
        text = upload.read().decode()
    except UnicodeDecodeError:
        raise BadFile(f"{name} is not a text file in UTF-8. Attach text only.") from None
    if not is_storable(text):
        raise BadFile(f"{name} holds a character that cannot be stored (NUL). Attach text only.")
    return TextFile(name, text)


LONGEST_TEXT = 200_000
# Concurrent replies of one person; each takes a thread and, at times, a database connection.
MOST_AT_ONCE = 8


class ChatError(Exception):
    """An error that the user can understand and correct."""


class BadText(ChatError):
    """The message cannot be sent."""


class NoRoom(ChatError):
    """The palace's quota is used up."""


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


class NothingToEdit(ChatError):
    def __init__(self) -> None:
        super().__init__("Another version has taken the place of this message. Reload the page.")


@dataclass(frozen=True, slots=True)
class Choices:
    """What a conversation may do with the palace.

    Attributes:
        recalls: Replies are given memories.
        off_record: No message enters the palace.
    """

    recalls: bool = True
    off_record: bool = False


ORDINARY = Choices()


@transaction.atomic
def choose(conversation: Conversation, choices: Choices, *, with_earlier: bool = False) -> None:
    """Change what a conversation may do from now on.

    Args:
        with_earlier: When going back on the record, also remember what was said off it.

    Raises:
        Conversation.DoesNotExist: it has been deleted.
    """
    messages = _locked(conversation)
    conversation.recalls, conversation.off_record = choices.recalls, choices.off_record
    conversation.save(update_fields=["recalls", "off_record"])
    if with_earlier and not choices.off_record:
        messages.filter(off_record=True).update(off_record=False)
        mark_due(conversation, timezone.now())


@transaction.atomic
def start(
    palace: Palace,
    agent: Agent | None,
    text: str,
    *,
    key: uuid.UUID,
    choices: Choices = ORDINARY,
    files: Sequence[TextFile] = (),
) -> Conversation:
    """Start a conversation with its first message, and begin the reply.

    Args:
        key: The message's id. Sent again, it returns the existing conversation.
        files: As in `say()`.

    Raises:
        BadText, NoRoom, TooManyReplies, redis.RedisError: as `say()`.
    """
    _check(text)
    palace.lock()
    used = Message.objects.within(palace).filter(uuid=key).select_related("conversation").first()
    if used:
        if used.role == "user" and used.text == text:
            return used.conversation
        key = uuid.uuid4()
    conversation = Conversation.objects.create(
        palace=palace,
        agent=agent,
        title=title_of(text),
        spoke_at=timezone.now(),
        recalls=choices.recalls,
        off_record=choices.off_record,
    )
    say(conversation, text, key=key, files=files)
    return conversation


@transaction.atomic
def say(
    conversation: Conversation,
    text: str,
    *,
    key: uuid.UUID,
    files: Sequence[TextFile] = (),
) -> Message:
    """Store the user's message, begin the reply and return it.

    Args:
        key: The message's own id. Sent twice, it is said once; but other words from a page
            that somebody went back to are new.
        files: Text files that come before the words, each as a message of its own.

    Raises:
        BadText: it is blank, too long, or holds what cannot be stored.
        NoRoom: the palace, where it would be remembered, is full.
        StillWriting: the reply before is not finished.
        Conversation.DoesNotExist: it has been deleted meanwhile.
        TooManyReplies: enough of them are being written for the same person.
        redis.RedisError: nobody could see the reply being written; nothing is stored.
    """
    _check(text)
    writer = live_reply.writer().sign_on()
    messages = _locked(conversation)
    used = Message.objects.filter(palace=conversation.palace_id, uuid=key).first()
    if used:
        same = (used.conversation_id, used.role, used.text) == (conversation.pk, "user", text)
        if same and used.replaced_at is None:
            return messages.current().get(position=used.position + 1)
        key = uuid.uuid4()
    last = messages.current().order_by("-position").first()
    if last and last.is_writing:
        raise StillWriting
    _check_room(conversation, [text, *(file.text for file in files)])
    position = last.position + 1 if last else 0
    for place, file in enumerate(files):
        _add(conversation, position + place, role="user", text=file.text, file_name=file.name)
    position += len(files)
    _add(conversation, position, uuid=key, role="user", text=text)
    return _begin(conversation, position + 1, writer)


@transaction.atomic
def edit(message: Message, text: str, *, key: uuid.UUID) -> Message:
    """Replace a message, begin the reply and return it.

    The message and all after it become an earlier version of the conversation, which can still be
    read; what the palace has of them goes to the trash.

    Args:
        key: The new message's own id. Sent twice, it is said once.

    Raises:
        NothingToEdit: another version has taken its place.
        BadText, NoRoom, StillWriting, TooManyReplies, Conversation.DoesNotExist,
        redis.RedisError: as `say()`.
    """
    _check(text)
    conversation = message.conversation
    writer = live_reply.writer().sign_on()
    # Filing locks the palace first, and so do we: nothing of this is filed after the trash.
    conversation.palace.lock()
    messages = _locked(conversation)
    if used := messages.current().filter(uuid=key, role="user", text=text).first():
        return messages.current().get(position=used.position + 1)
    current = messages.current().filter(pk=message.pk, role="user", file_name="").first()
    if current is None or Message.objects.filter(palace=message.palace_id, uuid=key).exists():
        raise NothingToEdit
    later = messages.current().filter(position__gte=current.position)
    if later.filter(status=Message.Status.WRITING).exists():
        raise StillWriting
    _check_room(conversation, [text])
    _trash(conversation, list(later.values_list("uuid", flat=True)))
    first = messages.current().filter(role="user").order_by("position").first()
    if current == first and conversation.title == title_of(current.text):
        _rename(conversation, title_of(text))
    later.update(replaced_at=timezone.now())
    _add(conversation, current.position, uuid=key, role="user", text=text)
    return _begin(conversation, current.position + 1, writer)


def _rename(conversation: Conversation, title: str) -> None:
    # The condition is checked in the database, so that a concurrent renaming is kept.
    as_it_was = Conversation.objects.filter(
        palace=conversation.palace_id, pk=conversation.pk, title=conversation.title
    )
    if as_it_was.update(title=title):
        conversation.title = title


def _trash(conversation: Conversation, replaced: Sequence[uuid.UUID]) -> None:
    drawers = Drawer.objects.filter(
        palace=conversation.palace_id,
        source=SOURCE,
        conversation=str(conversation.uuid),
        external_id__in=list(map(str, replaced)),
    )
    if drawers.kept().exists():
        trash_drawers(conversation.palace, drawers)


@transaction.atomic
def retry(conversation: Conversation, seen: uuid.UUID) -> Message:
    """Begin another reply in place of the last one.

    Args:
        seen: The reply that was not good enough. If it has been put aside already, the one in
            its place is returned.

    Raises:
        NothingToRetry: it is not the last one; more has been said since.
        StillWriting, TooManyReplies, Conversation.DoesNotExist, redis.RedisError: as `say()`.
    """
    writer = live_reply.writer().sign_on()
    messages = _locked(conversation)
    last = messages.current().order_by("-position").first()
    wanted = messages.filter(uuid=seen, role="assistant").first()
    if last is None or wanted is None or wanted.position != last.position:
        raise NothingToRetry
    if wanted != last:
        return last
    if last.is_writing:
        raise StillWriting
    messages.filter(pk=last.pk).update(replaced_at=timezone.now())
    return _begin(conversation, last.position, writer)


def _check(text: str) -> None:
    if not text.strip():
        raise BadText("There is nothing to send; write something first.")
    if len(text) > LONGEST_TEXT:
        raise BadText(
            f"This is {len(text):,} characters long; send at most {LONGEST_TEXT:,} at once."
        )
    if not is_storable(text):
        raise BadText(
            "This holds a character that cannot be stored (NUL, or half of a pair); remove it."
        )


def _locked(conversation: Conversation) -> MessageQuerySet:
    """Lock the conversation against other writers; return its messages."""
    conversation.lock()
    return Message.objects.filter(palace=conversation.palace_id, conversation=conversation)


def _begin(conversation: Conversation, position: int, writer: uuid.UUID) -> Message:
    _refuse_too_many(conversation.palace_id)
    status = Message.Status.WRITING
    reply = _add(conversation, position, role="assistant", status=status, writer=writer)
    transaction.on_commit(partial(reply_writer.begin, reply))
    return reply


def _check_room(conversation: Conversation, texts: Sequence[str]) -> None:
    palace = conversation.palace
    if conversation.off_record or not palace_quota().is_set or not is_automatic(palace.owner_id):
        return
    try:
        check_quota(palace, texts)
    except QuotaExceeded as error:
        raise NoRoom(str(error)) from None


def _refuse_too_many(palace_id: int) -> None:
    being_written = Message.objects.filter(palace=palace_id, status=Message.Status.WRITING)
    writers = list(being_written.values_list("writer", flat=True))
    if len(writers) >= MOST_AT_ONCE and sum(map(live_reply.is_alive, writers)) >= MOST_AT_ONCE:
        raise TooManyReplies(MOST_AT_ONCE)


def _add(conversation: Conversation, position: int, **values: Any) -> Message:
    now = timezone.now()
    same = Conversation.objects.filter(palace=conversation.palace_id, pk=conversation.pk)
    same.update(spoke_at=now)
    # Another tab may have changed it since the conversation was read.
    off_record = same.values_list("off_record", flat=True).get()
    return Message.objects.create(
        palace_id=conversation.palace_id,
        conversation=conversation,
        position=position,
        said_at=now,
        off_record=off_record,
        **values,
    )

"""The tables of the chat: Agent, Conversation, Message."""

from __future__ import annotations

import hashlib
import sys
from typing import Self
from uuid import UUID

from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import MD5, Lower

from isolation.raw_sql import (
    NO_NAMES,
    Part,
    all_but,
    columns_of,
    fetch_instances,
    fetch_rows,
)
from language.storable import LABEL_LENGTH, storable_label
from palace.models import ForeignKeyInPalace, InPalace, InPalaceQuerySet, Palace
from settings_app.fast_reverse import address_of

TITLE_LENGTH = 60
UNTITLED = "Untitled"


class Agent(InPalace):
    """An assistant to talk to: name, instructions, and whether it is given memories."""

    FIRST_NAME = "Assistant"

    name = models.CharField(max_length=60)
    instructions = models.TextField(blank=True)
    model = models.CharField(max_length=200, blank=True, help_text="Empty: the settings' model.")
    recalls = models.BooleanField(
        default=True,
        help_text="Off: replies without memories; conversations are mined all the same.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InPalaceQuerySet["Agent"].as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="agent_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="agent_uuid"),
            models.UniqueConstraint("palace", Lower("name"), name="agent_name"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return address_of("agent_detail", self.uuid)


class ConversationQuerySet(InPalaceQuerySet["Conversation"]):
    def listed(self) -> Self:
        """What lists show of each, latest first."""
        shown = ("uuid", "title", "off_record", "spoke_at", "agent__name")
        return self.select_related("agent").only(*shown).order_by("-spoke_at", "-pk")

    def newest(self, palace: Palace, number: int) -> list[Conversation]:
        """The first of the palace as `listed`."""
        rows = fetch_instances(_LATEST, [palace.pk, number], _LISTED)
        return [_put_together(palace, *row) for row in rows]

    def named(self, palace: Palace, uuid: UUID) -> Conversation | None:
        """A conversation of the palace, with its agent, if it exists."""
        rows = fetch_instances(_ONE, [palace.pk, uuid], _CONVERSATION)
        return next((_put_together(palace, *row) for row in rows), None)


def _put_together(palace: Palace, conversation: Conversation, agent: Agent | None) -> Conversation:
    # Descriptors would check what the database has checked.
    conversation._state.fields_cache |= {"palace": palace, "agent": agent}
    return conversation


class Conversation(InPalace):
    agent = ForeignKeyInPalace(
        Agent, models.SET_NULL, related_name="conversations", null=True, db_constraint=False
    )
    title = models.CharField(max_length=LABEL_LENGTH)
    created_at = models.DateTimeField(auto_now_add=True)
    spoke_at = models.DateTimeField(help_text="When something was last said.")
    mine_due_at = models.DateTimeField(
        null=True, help_text="When what was said is to be mined; null when nothing waits."
    )
    recalls = models.BooleanField(
        default=True, db_default=True, help_text="Off: replies without memories."
    )
    off_record = models.BooleanField(
        default=False,
        db_default=False,
        help_text="On: nothing that is said from now on enters the palace.",
    )

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-spoke_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="conversation_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="conversation_uuid"),
        ]
        indexes = [
            models.Index(fields=["palace", "-spoke_at"], name="conversation_by_time"),
            models.Index(
                fields=["mine_due_at"],
                name="conversation_due",
                condition=Q(mine_due_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return address_of("conversation_detail", self.uuid)

    def newest_messages(self, number: int, before: int = sys.maxsize) -> list[Message]:
        """The last messages, newest first, or the last before a position; no replaced ones."""
        rows = fetch_instances(_NEWEST, [self.palace_id, self.pk, before, number], _MESSAGE)
        return [message for (message,) in rows]

    def count_unmined(self) -> int:
        """The number of messages that have not been filed yet."""
        given = [self.palace_id, self.pk, [str(status) for status in Message.SAID]]
        [(number,)] = fetch_rows(_UNMINED, given, prepared=True)
        return int(number)

    def lock(self) -> None:
        """Lock the conversation, so that only this transaction adds messages.

        It waits for a deletion of the conversation or its palace; all lock in the same order,
        so nobody waits in a circle.

        Raises:
            Conversation.DoesNotExist: it has been deleted.
        """
        with connection.cursor() as cursor:
            palaces = Palace._meta.db_table
            cursor.execute(f"SELECT FROM {palaces} WHERE id = %s FOR KEY SHARE", [self.palace_id])
        locked = Conversation.objects.select_for_update(no_key=True).only("pk")
        locked.get(palace=self.palace_id, pk=self.pk)


class MessageQuerySet(InPalaceQuerySet["Message"]):
    def current(self) -> Self:
        """Messages without the replies that another try replaced."""
        return self.filter(replaced_at=None)

    def asked(self, text: str) -> Self:
        """The user's messages with exactly this text."""
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        return self.alias(digest=MD5("text")).filter(role="user", digest=digest, text=text)

    def unmined(self) -> Self:
        """Finished messages that are not filed yet."""
        said = self.filter(mined_at=None, mine=True, off_record=False, status__in=Message.SAID)
        return said.exclude(text="")


class Message(InPalace):
    """One thing said. Its text is kept to the byte, as the palace will keep it."""

    class Status(models.TextChoices):
        WRITING = "writing", "being written"
        DONE = "done", "done"
        STOPPED = "stopped", "stopped by the user"
        FAILED = "failed", "broken off by an error"

    # Finished; a stopped reply counts, as far as it came.
    SAID = (Status.DONE, Status.STOPPED)

    conversation = ForeignKeyInPalace(
        Conversation, models.DO_NOTHING, related_name="messages", db_constraint=False
    )
    position = models.PositiveIntegerField(help_text="Order in the conversation, from 0.")
    role = models.CharField(max_length=20, help_text="user or assistant.")
    text = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.DONE)
    mine = models.BooleanField(
        default=True, help_text="False for replies that only quote the palace itself."
    )
    model = models.CharField(max_length=300, blank=True, help_text="Who wrote it, for people.")
    recollection = models.UUIDField(null=True, help_text="The trace of the recall before it.")
    note = models.TextField(blank=True, help_text="What was degraded or skipped, or went wrong.")
    writer = models.UUIDField(null=True, help_text="The process that is writing it.")
    said_at = models.DateTimeField()
    mined_at = models.DateTimeField(null=True, help_text="When it was handed to the palace.")
    replaced_at = models.DateTimeField(null=True, help_text="When another try took its place.")
    off_record = models.BooleanField(
        default=False,
        db_default=False,
        help_text="On: it does not enter the palace unless somebody asks for it.",
    )
    file_name = models.CharField(
        max_length=LABEL_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text="Of a text file that the user attached.",
    )

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="message_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="message_uuid"),
            models.UniqueConstraint(
                fields=["palace", "conversation", "position"],
                condition=Q(replaced_at=None),
                name="message_position",
            ),
            models.UniqueConstraint(
                fields=["palace", "conversation"],
                condition=Q(status="writing"),
                name="message_one_writing",
            ),
        ]
        indexes = [
            models.Index(fields=["palace", "conversation", "position"], name="message_in_order"),
            models.Index(
                "palace", MD5("text"), name="message_asked_before", condition=Q(role="user")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.position}"

    @property
    def anchor(self) -> str:
        """The id of its element in the conversation's page."""
        return f"m-{self.uuid}"

    @property
    def is_writing(self) -> bool:
        return self.status == self.Status.WRITING

    @property
    def is_quiet(self) -> bool:
        """A reply without words: no model is set, and nothing was asked or learnt."""
        return self.role == "assistant" and self.status == self.Status.DONE and not self.text


# Written out: Django takes longer to put statements together than the database to answer them.
_CONVERSATION: tuple[Part, ...] = ((Conversation, "c", NO_NAMES), (Agent, "a", NO_NAMES))
_SHOWN = all_but(Conversation, "id uuid palace_id agent_id title off_record spoke_at")
_LISTED: tuple[Part, ...] = (
    (Conversation, "c", _SHOWN),
    (Agent, "a", all_but(Agent, "id palace_id name")),
)
_OF_AGENTS = (
    " FROM chat_conversation c LEFT JOIN chat_agent a"
    " ON a.palace_id = c.palace_id AND a.id = c.agent_id WHERE c.palace_id = %s"
)
_ONE = f"SELECT {columns_of(_CONVERSATION)}{_OF_AGENTS} AND c.uuid = %s"
_LATEST = (
    f"SELECT {columns_of(_LISTED)}{_OF_AGENTS} ORDER BY c.spoke_at DESC, c.id DESC LIMIT %s::bigint"
)
_MESSAGE: tuple[Part, ...] = ((Message, "m", NO_NAMES),)
_CURRENT = (
    " FROM chat_message m"
    " WHERE m.palace_id = %s AND m.conversation_id = %s AND m.replaced_at IS NULL"
)
_NEWEST = (
    f"SELECT {columns_of(_MESSAGE)}{_CURRENT} AND m.position < %s::bigint"
    " ORDER BY m.position DESC LIMIT %s::bigint"
)
# As `MessageQuerySet.unmined` has it.
_UNMINED = (
    f"SELECT count(*){_CURRENT} AND m.mined_at IS NULL AND m.mine AND NOT m.off_record"
    " AND m.status = ANY(%s) AND m.text <> ''"
)


def one_line(text: str) -> str:
    """A title or a name as it was typed, without breaks; empty where nothing of it can be seen."""
    line = storable_label(" ".join(text.split()))
    return line if any(sign.isprintable() and not sign.isspace() for sign in line) else ""


def title_of(text: str) -> str:
    """A title for a conversation with this first message: its first line, cut between words."""
    line = next(filter(None, map(one_line, text.splitlines())), UNTITLED)
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH].rsplit(" ", 1)[0] + " …"

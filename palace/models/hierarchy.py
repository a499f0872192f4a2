"""Wing, room, closet and drawer: where a message is stored, and the pointer to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Count, Q, Sum
from django.utils import timezone

from language.errors import BadPointer
from language.storable import ID_LENGTH, LABEL_LENGTH
from language.transcripts import Role, Turn
from palace.models.palace import ForeignKeyInPalace, InPalace, InPalaceQuerySet, Palace
from settings_app.fast_reverse import address_of

if TYPE_CHECKING:
    from datetime import datetime

# Tag letters and their meanings.
TAGS = {
    "p": "people",
    "l": "locations",
    "o": "organisations",
    "e": "events",
    "i": "items",
    "t": "time",
    "s": "secrets",
}
_POINTER = re.compile(r"\s*(?:§\s*)?W-0*(\d{1,9})/R-0*(\d{1,9})/D-0*(\d{1,9})\s*", re.IGNORECASE)


class Wing(InPalace):
    """A subject: a person, project, topic or agent."""

    # The wing of rooms that are not mined yet.
    UNSORTED = 0

    class Kind(models.TextChoices):
        PERSON = "person"
        PROJECT = "project"
        TOPIC = "topic"
        AGENT = "agent"

    number = models.PositiveIntegerField(
        help_text="W-042; counts within the palace; 0 is Unsorted."
    )
    slug = models.SlugField(max_length=LABEL_LENGTH, allow_unicode=True, db_index=False)
    name = models.CharField(max_length=LABEL_LENGTH)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    kept_months = models.PositiveIntegerField(
        null=True, help_text="Older messages go to the trash; null: they stay."
    )
    never = ArrayField(
        models.CharField(max_length=LABEL_LENGTH),
        default=list,
        db_default=[],
        help_text="Names of people and topics; messages about them go to the trash.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InPalaceQuerySet["Wing"].as_manager()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="wing_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="wing_uuid"),
            models.UniqueConstraint(fields=["palace", "slug"], name="wing_slug"),
            models.UniqueConstraint(fields=["palace", "number"], name="wing_number"),
        ]

    @property
    def has_rules(self) -> bool:
        return self.kept_months is not None or bool(self.never)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return address_of("wing_detail", self.uuid)


class WingAlias(models.Model):
    """Another name of a wing; a name belongs to one wing only."""

    palace = models.ForeignKey(Palace, models.DO_NOTHING, related_name="+", db_constraint=False)
    wing = ForeignKeyInPalace(Wing, models.CASCADE, related_name="aliases", db_constraint=False)
    slug = models.SlugField(max_length=LABEL_LENGTH, allow_unicode=True, db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["palace", "slug"], name="wing_alias_slug"),
        ]
        verbose_name_plural = "wing aliases"

    def __str__(self) -> str:
        return self.slug


class RoomQuerySet(InPalaceQuerySet["Room"]):
    def mark_episode_due(self) -> None:
        """Mark the episodes of these rooms' conversations as due.

        Call it in the transaction that changes their messages; the caller locks the palace.
        """
        self.update(episode_due_at=timezone.now())

    def sizes(self) -> dict[str, int]:
        """How many `rooms` these are, and their drawers: `stored`, and `kept` outside the trash."""
        drawers = {name: Sum(f"{name}_count", default=0) for name in ("stored", "kept")}
        return self.aggregate(rooms=Count("pk"), **drawers)


class Room(InPalace):
    """A time-slice of a wing, typically one conversation.

    Numbers count within the palace, so a pointer still leads here after the room moved wings.
    """

    wing = ForeignKeyInPalace(Wing, models.CASCADE, related_name="rooms", db_constraint=False)
    number = models.PositiveIntegerField(help_text="R-11; counts within the palace.")
    source = models.CharField(max_length=50, help_text="Who brought it: chat, chatgpt, plain …")
    external_id = models.CharField(max_length=ID_LENGTH, help_text="The conversation's id there.")
    agent = models.CharField(
        max_length=LABEL_LENGTH, blank=True, help_text="Who took part, if named."
    )
    title = models.CharField(max_length=LABEL_LENGTH)
    area = models.CharField(
        max_length=LABEL_LENGTH, default="", db_default="", help_text="Awaits a wing of this area."
    )
    project = models.BigIntegerField(
        null=True, editable=False, help_text="Key of the project's wing that a dream suggests."
    )
    is_settled = models.BooleanField(
        default=False, db_default=False, help_text="A person placed it: no project is suggested."
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    highest_drawer = models.PositiveIntegerField(
        default=0, help_text="No drawer is given a number up to here again."
    )
    slot = models.PositiveIntegerField(
        null=True, help_text="Its place along the wing's corridor; null until it is drawn."
    )
    reviewed_at = models.DateTimeField(
        null=True, help_text="When its owner said to keep it although it is never recalled."
    )
    recalled_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When a recall last brought something of it, to within a day.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    # The database keeps these with the drawers; nothing else writes them.
    stored_count = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawers, those in the trash too."
    )
    stored_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Of their texts, as UTF-8."
    )
    kept_count = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Drawers outside the trash."
    )
    kept_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Of their texts, as UTF-8."
    )
    episode_due_at = models.DateTimeField(
        null=True, help_text="Since when its conversation's episode is to be made, or made anew."
    )

    objects = RoomQuerySet.as_manager()

    class Meta:
        ordering = ["started_at", "number"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="room_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="room_uuid"),
            models.UniqueConstraint(fields=["palace", "number"], name="room_number"),
            models.UniqueConstraint(
                fields=["palace", "source", "external_id", "wing"], name="room_conversation"
            ),
            models.UniqueConstraint(fields=["palace", "wing", "slot"], name="room_slot"),
        ]
        indexes = [
            models.Index(fields=["palace"], condition=Q(slot=None), name="room_not_placed"),
            models.Index(fields=["palace", "wing", "started_at"], name="room_by_wing"),
            models.Index(fields=["palace", "wing"], name="room_with_area", condition=~Q(area="")),
            models.Index(
                fields=["palace", "episode_due_at"],
                name="room_episode_due",
                condition=Q(episode_due_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return address_of("room_detail", self.uuid)


class Closet(InPalace):
    """A topic discussed in a room."""

    room = ForeignKeyInPalace(Room, models.CASCADE, related_name="closets", db_constraint=False)
    slug = models.SlugField(max_length=LABEL_LENGTH, allow_unicode=True, db_index=False)
    title = models.CharField(max_length=LABEL_LENGTH)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InPalaceQuerySet["Closet"].as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="closet_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="closet_uuid"),
            models.UniqueConstraint(fields=["palace", "room", "slug"], name="closet_slug"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return address_of("closet_detail", self.uuid)


class DrawerQuerySet(InPalaceQuerySet["Drawer"]):
    def kept(self) -> Self:
        """Not in the trash."""
        return self.filter(trashed_at=None)

    def trashed(self) -> Self:
        return self.exclude(trashed_at=None)

    def unmined(self) -> Self:
        """Drawers without closet, passages and postings, outside the trash."""
        return self.filter(mined_at=None, trashed_at=None)

    def unread(self) -> Self:
        """Mined drawers that were not read for facts yet, outside the trash."""
        return self.filter(facts_read_at=None, trashed_at=None).exclude(mined_at=None)

    def for_agent(self, agent: str) -> Self:
        """Drawers that this agent may use: its own and those without one; empty: all."""
        return self.filter(agent__in={"", agent}) if agent else self

    def of_other_agents(self, agent: str) -> Self:
        """The opposite of `for_agent`."""
        return self.exclude(agent="").exclude(agent=agent) if agent else self.none()

    def in_order(self) -> Self:
        return self.order_by("conversation", "position", "pk")

    def with_place(self) -> Self:
        """Fetch wing, room and closet, for pointers and pages."""
        return self.select_related("room__wing", "closet")


class Drawer(InPalace):
    """One message or note, verbatim to the byte. It may move or be trashed, never change."""

    # Statements name the palace too, so the indexes that begin with it find these.
    room = ForeignKeyInPalace(
        Room, models.CASCADE, related_name="drawers", db_constraint=False, db_index=False
    )
    closet = ForeignKeyInPalace(
        Closet, models.SET_NULL, "drawers", null=True, db_constraint=False, db_index=False
    )
    number = models.PositiveIntegerField(help_text="D-007; counts within the room.")
    source = models.CharField(max_length=50)
    conversation = models.CharField(
        max_length=ID_LENGTH, help_text="The conversation's id at the source."
    )
    external_id = models.CharField(
        max_length=ID_LENGTH, help_text="The message's id in its conversation."
    )
    position = models.PositiveIntegerField(help_text="Order within the conversation, from 0.")
    role = models.CharField(max_length=20, help_text="user, assistant, system or tool.")
    speaker = models.CharField(max_length=LABEL_LENGTH, blank=True)
    agent = models.CharField(
        max_length=ID_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text="Only this agent, and calls without one, find it; empty: everyone.",
    )
    text = models.TextField()
    said_at = models.DateTimeField(help_text="When it was said, not when it was stored.")
    metadata = models.JSONField(null=True, help_text="What its teller wants kept beside it.")
    tags = models.JSONField(default=dict, help_text='AAAK tags by letter: {"p": ["Derek"]}.')
    preference = models.FloatField(
        default=0, help_text="How much it states a lasting wish or taste, 0 to 1."
    )
    terms = models.PositiveIntegerField(default=0, help_text="Its length as BM25 counts it.")
    traits = models.SmallIntegerField(
        default=0, db_default=0, help_text="What kind of thing it says, one bit a trait."
    )
    filed_at = models.DateTimeField(auto_now_add=True)
    mined_at = models.DateTimeField(null=True, help_text="When passages and postings were written.")
    facts_read_at = models.DateTimeField(null=True, help_text="When it was read for facts.")
    trashed_at = models.DateTimeField(null=True)

    objects = DrawerQuerySet.as_manager()

    class Meta:
        ordering = ["room", "number"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="drawer_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="drawer_uuid"),
            models.UniqueConstraint(fields=["palace", "room", "number"], name="drawer_number"),
            models.UniqueConstraint(
                fields=["palace", "source", "conversation", "external_id"], name="drawer_message"
            ),
        ]
        indexes = [
            models.Index(
                fields=["palace", "source", "conversation", "position"], name="drawer_in_order"
            ),
            models.Index(fields=["palace", "closet"], name="drawer_by_closet"),
            models.Index(fields=["palace", "said_at"], name="drawer_by_time"),
            # Pages count drawers by room with an index-only scan of it.
            models.Index(
                fields=["palace", "room"], name="drawer_kept", condition=Q(trashed_at=None)
            ),
            # Of thousands of drawers that name somebody, pages read only where and when.
            models.Index(
                fields=["palace", "id"],
                include=["room", "said_at"],
                name="drawer_kept_by_key",
                condition=Q(trashed_at=None),
            ),
            models.Index(
                fields=["palace", "room"], name="drawer_unmined", condition=Q(mined_at=None)
            ),
            models.Index(
                fields=["palace", "room"],
                name="drawer_unread",
                condition=Q(facts_read_at=None, trashed_at=None),
            ),
            models.Index(
                fields=["palace", "agent"], name="drawer_by_agent", condition=~Q(agent="")
            ),
            models.Index(
                fields=["palace", "trashed_at"],
                name="drawer_trash",
                condition=Q(trashed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.pointer)

    def get_absolute_url(self) -> str:
        return address_of("drawer_detail", self.uuid)

    @property
    def pointer(self) -> Pointer:
        return Pointer(self.room.wing.number, self.room.number, self.number)

    def as_turn(self) -> Turn:
        """The message as it is read for topics and facts; filing stores no other role."""
        return Turn(self.external_id, cast(Role, self.role), self.text, self.said_at, self.speaker)

    def trash(self, at: datetime | None = None) -> None:
        self.trashed_at = at or timezone.now()
        self.save(update_fields=["trashed_at"])


@dataclass(frozen=True, slots=True, order=True)
class Pointer:
    """A drawer's address: the numbers of its wing (0: the unsorted one), its room and itself."""

    wing: int
    room: int
    drawer: int

    def __str__(self) -> str:
        return f"§ W-{self.wing:03}/R-{self.room:02}/D-{self.drawer:03}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pointer as written; the section sign, leading zeros and case are optional.

        Raises:
            BadPointer: `text` is not a pointer.
        """
        match = _POINTER.fullmatch(text)
        if match is None:
            raise BadPointer(text)
        return cls(*map(int, match.groups()))


def format_tags(tags: Mapping[str, Sequence[str]]) -> str:
    """`@p Derek, Ann @l Lisbon`: letters in the order of `TAGS`, without empty ones."""
    return " ".join(f"@{letter} {', '.join(tags[letter])}" for letter in TAGS if tags.get(letter))

"""The tables of a palace, and what their callers need: query sets, pointers and constants."""

from palace.models.dreams import (
    ASKS_FIRST,
    DreamMark,
    Proposal,
    ProposalFact,
    ProposalQuerySet,
    ProposalQuote,
    requires_permission,
)
from palace.models.entities import Entity, Mention
from palace.models.episodes import BEFORE_EPISODES, Episode, EpisodeQuerySet, EpisodeVector
from palace.models.facts import (
    PREDICATE_LENGTH,
    Evidence,
    Fact,
    FactEvent,
    FactQuerySet,
    FactVector,
    about_any,
)
from palace.models.hierarchy import (
    TAGS,
    Closet,
    Drawer,
    DrawerQuerySet,
    Pointer,
    Room,
    Wing,
    WingAlias,
    format_tags,
)
from palace.models.palace import InPalace, InPalaceQuerySet, Palace, PalaceQuerySet
from palace.models.recall_records import ExpectedDrawer, RecallCase, RecollectionTrace
from palace.models.receipts import (
    WRITES_KEPT_FOR,
    Activity,
    IdempotentWrite,
    ImportJob,
    forget_old_writes,
)
from palace.models.search_index import Change, EmbeddingSpace, Passage, Posting
from palace.models.statements import SaidOrder, Statement, Telling, at_moment
from palace.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "ASKS_FIRST",
    "BEFORE_EPISODES",
    "PREDICATE_LENGTH",
    "TAGS",
    "WRITES_KEPT_FOR",
    "Activity",
    "Change",
    "Closet",
    "Drawer",
    "DrawerQuerySet",
    "DreamMark",
    "EmbeddingSpace",
    "Entity",
    "Episode",
    "EpisodeQuerySet",
    "EpisodeVector",
    "Evidence",
    "ExpectedDrawer",
    "Fact",
    "FactEvent",
    "FactQuerySet",
    "FactVector",
    "IdempotentWrite",
    "ImportJob",
    "InPalace",
    "InPalaceQuerySet",
    "Mention",
    "Palace",
    "PalaceQuerySet",
    "Passage",
    "Pointer",
    "Posting",
    "Proposal",
    "ProposalFact",
    "ProposalQuerySet",
    "ProposalQuote",
    "RecallCase",
    "RecollectionTrace",
    "Room",
    "SaidOrder",
    "Statement",
    "Telling",
    "Webhook",
    "WebhookDelivery",
    "Wing",
    "WingAlias",
    "about_any",
    "at_moment",
    "forget_old_writes",
    "format_tags",
    "requires_permission",
]

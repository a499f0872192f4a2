"""Everything the palace keeps. Each table starts from a palace."""

from palace.models.dreams import DreamMark, Proposal, ProposalFact, ProposalQuote
from palace.models.entities import Entity, Mention
from palace.models.episodes import Episode, EpisodeVector
from palace.models.facts import Evidence, Fact, FactEvent, FactVector
from palace.models.hierarchy import Closet, Drawer, Room, Wing, WingAlias
from palace.models.palace import Palace
from palace.models.recall_records import ExpectedDrawer, RecallCase, RecollectionTrace
from palace.models.receipts import Activity, IdempotentWrite, ImportJob
from palace.models.search_index import Change, EmbeddingSpace, Passage, Posting
from palace.models.statements import Statement, Telling
from palace.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "Activity",
    "Change",
    "Closet",
    "Drawer",
    "DreamMark",
    "EmbeddingSpace",
    "Entity",
    "Episode",
    "EpisodeVector",
    "Evidence",
    "ExpectedDrawer",
    "Fact",
    "FactEvent",
    "FactVector",
    "IdempotentWrite",
    "ImportJob",
    "Mention",
    "Palace",
    "Passage",
    "Posting",
    "Proposal",
    "ProposalFact",
    "ProposalQuote",
    "RecallCase",
    "RecollectionTrace",
    "Room",
    "Statement",
    "Telling",
    "Webhook",
    "WebhookDelivery",
    "Wing",
    "WingAlias",
]

"""Everything the palace keeps. Each table starts from a palace."""

from palace.models.activity import Activity
from palace.models.cases import ExpectedDrawer, RecallCase
from palace.models.changes import Change
from palace.models.dreams import DreamMark, Proposal, ProposalFact, ProposalQuote
from palace.models.entities import Entity, Mention
from palace.models.episodes import Episode, EpisodeVector
from palace.models.facts import Evidence, Fact, FactEvent, FactVector
from palace.models.hierarchy import Closet, Drawer, Room, Wing, WingAlias
from palace.models.imports import ImportJob
from palace.models.palace import Palace
from palace.models.passages import EmbeddingSpace, Passage
from palace.models.postings import Posting
from palace.models.statements import Statement, Telling
from palace.models.traces import RecollectionTrace
from palace.models.webhooks import Webhook, WebhookDelivery
from palace.models.writes import IdempotentWrite

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

"""Rows that belong to the palace of a drawer: each is made once, and named by its address."""

from __future__ import annotations

from django.utils.text import slugify

from api.models import ConnectedApp
from chat.models import Agent, Conversation, Message
from palace.curation.trash import batch_key
from palace.models import (
    Activity,
    Drawer,
    Entity,
    Evidence,
    Fact,
    ImportJob,
    Proposal,
    RecollectionTrace,
    Webhook,
    Wing,
)
from palace.recall.deduplication import drawer_entry, fact_entry
from palace.recall.evaluation import expect
from palace.working.ledger import Ledger, LedgerEntry
from settings_app.api_keys import ApiKey, issue
from tests.api.oauth.conftest import connect
from tests.knowledge.dreaming.conftest import proposed


def import_job(drawer):
    made, _ = ImportJob.objects.get_or_create(
        palace=drawer.palace,
        file_name=drawer.text,
        preview={"format": drawer.room.title},
        spool="nothing-is-spooled",
    )
    return made


def in_trash(drawer):
    """The key of a batch in the trash of the same palace."""
    other, _ = Drawer.objects.get_or_create(
        palace=drawer.palace,
        room=drawer.room,
        number=1,
        position=1,
        text=drawer.text,
        said_at=drawer.said_at,
    )
    if other.trashed_at is None:
        other.trash()
    return batch_key(other.trashed_at)


def other_wing(drawer):
    made, _ = Wing.objects.get_or_create(
        palace=drawer.palace, number=1, slug="other", name="Other", kind=Wing.Kind.TOPIC
    )
    return made


def agent(drawer):
    made, _ = Agent.objects.get_or_create(palace=drawer.palace, name="Coach")
    return made


def talk(drawer):
    """A conversation in the chat, with a reply."""
    made, _ = Conversation.objects.get_or_create(
        palace=drawer.palace,
        title=drawer.room.title,
        agent=agent(drawer),
        spoke_at=drawer.said_at,
    )
    said = {"palace": drawer.palace, "conversation": made, "said_at": drawer.said_at}
    for position, role in enumerate(("user", "assistant")):
        Message.objects.get_or_create(**said, position=position, role=role, text=drawer.text)
    return made


def webhook(drawer):
    """It gets the events of the palace, at an address that is its owner's secret."""
    url = f"https://example.org/{slugify(drawer.room.title)}"
    made, _ = Webhook.objects.get_or_create(owner=drawer.palace.owner, url=url, events=["mined"])
    return made


def api_key(drawer):
    """A key of a program, called like the room."""
    named = {"owner": drawer.palace.owner, "name": drawer.room.title}
    return ApiKey.objects.filter(**named).first() or issue(*named.values())[0]


def connected_app(drawer):
    """An app of the owner, called like the room."""
    owner, name = drawer.palace.owner, drawer.room.title
    found = ConnectedApp.objects.filter(owner=owner, key__name=name).first()
    return found or connect(owner, name)[0]


def ledger_item(drawer):
    """The drawer as the conversation's ledger has it."""
    entries = [drawer_entry(drawer, 0), fact_entry(fact(drawer), 0, "")]
    Ledger(drawer.palace, str(talk(drawer).uuid)).mark(*entries, LedgerEntry("skill:rowing"))
    return entries[0].item


def recollection(drawer):
    """The trace of a recall that brought the drawer up."""
    hit = {"drawer": str(drawer.uuid), "pointer": str(drawer.pointer), "score": 1, "signals": {}}
    made, _ = RecollectionTrace.objects.get_or_create(
        palace=drawer.palace,
        query=drawer.text,
        recipe="default",
        now=drawer.said_at,
        hits=[hit],
        candidates={"signals": [], "rows": []},
        duration_ms=1,
    )
    return made


def entity(drawer):
    made, _ = Entity.objects.get_or_create(
        palace=drawer.palace, kind="person", slug="whose-page", name=drawer.room.title
    )
    return made


def merge(drawer, kind="entities_merged"):
    """What was noted when two entities or wings were merged."""
    made, _ = Activity.objects.get_or_create(
        palace=drawer.palace,
        kind=kind,
        summary=drawer.text,
        detail={"about": [str(entity(drawer).uuid)]},
    )
    return made


def fact(drawer):
    """A fact that rests on the drawer."""
    made, _ = Fact.objects.get_or_create(
        palace=drawer.palace,
        subject=entity(drawer),
        type="opinion",
        predicate="opinion",
        text=drawer.text,
        confidence=1,
        single=False,
        recorded_at=drawer.said_at,
    )
    Evidence.objects.get_or_create(
        palace=drawer.palace, fact=made, drawer=drawer, start=0, end=len(drawer.text)
    )
    return made


def drop(drawer):
    """A proposal to let a fact go, which waits to be decided on."""
    one = fact(drawer)
    if found := Proposal.objects.within(drawer.palace).filter(about__fact=one).first():
        return found
    return proposed(drawer.palace, "drop", one)


def case(drawer):
    return expect(recollection(drawer), drawer)


def reply(drawer):
    return talk(drawer).messages.get(role="assistant")


def question(drawer):
    return talk(drawer).messages.get(role="user")

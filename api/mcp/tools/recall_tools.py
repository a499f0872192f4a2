"""Remember, recall and search: what was said, in and out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4, uuid5

from django.utils import timezone
from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.fields import MOST_FOUND, Asked, Moment, OfSomebody, SomeText, Text, Told
from api.mcp.registry import tool
from api.mcp.tools.facts import FactTold, facts_told
from api.rest.memory_service import representations
from language.transcripts import Role, Transcript, Turn
from palace.models import Drawer, Fact, Palace
from palace.pipeline.deadline import AtOnce, mine_at_once
from palace.recall import recall as recalling
from palace.sdk.arguments import metadata_of
from palace.tasks import enqueue_post_mining

SOURCE = "mcp"
# Clients wait a minute for a tool. What is not learnt by then is made up for later.
PATIENCE_S = 50
MOST_MESSAGES = 1_000
MOST_TOKENS = 100_000


class Message(Asked):
    content: SomeText = Field(description="Kept to the byte.")
    role: Role = "user"
    name: Text = Field("", description="Who speaks.")


class RememberAsked(OfSomebody):
    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    conversation_id: SomeText | None = Field(
        None, description="Messages of one conversation stay together under a name of your own."
    )
    said_at: Moment | None = Field(None, description="When it was said; now unless given.")
    metadata: dict[str, Any] | None = Field(None, description="Kept beside each message.")
    idempotency_key: SomeText | None = Field(
        None, description="A call that is sent again with the same key keeps nothing twice."
    )


class Kept(Told):
    uuid: UUID
    pointer: str


class RememberTold(Told):
    conversation_id: str
    drawers: list[Kept] = Field(description="Where each message is kept, in order.")
    facts: list[FactTold] = Field(description="What was learnt of them and is held.")
    extraction: Literal["complete", "degraded"]
    notes: list[str]


@tool("Remember", "write")
def remember(caller: Caller, asked: RememberAsked) -> RememberTold:
    """Keep messages word by word, and learn what they say. Use it for whatever will matter later.

    They can be found at once, by recall and search. Of what changed, such as where somebody lives,
    the new statement takes the place of the old one, which stays on record.
    """
    palace = caller.palace_made(asked.user_id)
    turn = _turn(palace, asked.idempotency_key)
    transcript = _transcript(turn, asked)
    done = mine_at_once(palace, transcript, seconds=PATIENCE_S)
    enqueue_post_mining(palace.pk)
    return _remembered(palace, transcript, done)


def _turn(palace: Palace, key: str | None) -> str:
    """The same for the same key: a call that died and is sent again files nothing twice."""
    return str(uuid5(palace.uuid, key) if key else uuid4())


def _transcript(turn: str, asked: RememberAsked) -> Transcript:
    said_at = asked.said_at or timezone.now()
    kept_with = metadata_of(asked.metadata) or None
    turns = [
        Turn(f"{turn}/{at}", each.role, each.content, said_at, each.name, kept_with)
        for at, each in enumerate(asked.messages)
    ]
    return Transcript(SOURCE, asked.conversation_id or turn, "", tuple(turns))


def _remembered(palace: Palace, transcript: Transcript, done: AtOnce) -> RememberTold:
    keys = [drawer.pk for drawer in done.drawers]
    drawers = Drawer.objects.within(palace).with_place().filter(pk__in=keys).order_by("position")
    facts = Fact.objects.within(palace).active()
    learnt = facts.filter(evidence__palace=palace, evidence__drawer__in=keys).distinct()
    return RememberTold(
        conversation_id=transcript.external_id,
        drawers=[Kept(uuid=each.uuid, pointer=str(each.pointer)) for each in drawers],
        facts=facts_told(learnt.order_by("pk")),
        extraction="degraded" if done.notes else "complete",
        notes=list(done.notes),
    )


class RecallAsked(OfSomebody):
    query: SomeText = Field(description="The question, as a person would ask it.")
    max_tokens: int = Field(1024, ge=1, le=MOST_TOKENS, description="Length of the context.")
    top_k: int | None = Field(None, ge=1, le=MOST_FOUND, description="Messages at most.")
    as_of: Moment | None = Field(None, description="Leave out what was said later.")


class Citation(Told):
    pointer: str | None = Field(description="§ W-042/R-11/D-007; get_drawer has the whole text.")
    drawer: UUID | None
    memory: UUID | None = Field(description="Where the line is a fact: its id.")
    snippet: str
    score: float = Field(description="Compares within this answer only.")


class RecallTold(Told):
    context: str = Field(description="What is known and was said; empty where nothing fits.")
    tokens: int
    citations: list[Citation] = Field(description="What each line of the context rests on.")
    recollection: UUID | None = Field(description="On record under this id.")
    notes: list[str] = Field(description="What was degraded or left out.")


@tool("Recall", "read")
def recall(caller: Caller, asked: RecallAsked) -> RecallTold:
    """What is known and was said that answers a question, within a budget of tokens.

    Use it before you answer anything that may touch on the person, their people, their projects
    or earlier conversations. Cite the pointers.
    """
    palace = caller.palace(asked.user_id)
    if palace is None:
        return RecallTold.model_validate(representations.NOTHING_RECALLED)
    recollection = recalling.recall(
        palace,
        recalling.RecallRequest(
            asked.query,
            top_k=asked.top_k,
            as_of=asked.as_of,
            budget_tokens=asked.max_tokens,
            with_facts=True,
        ),
    )
    return RecallTold.model_validate(representations.recalled(palace, recollection))


class SearchAsked(OfSomebody):
    query: SomeText
    limit: int = Field(10, ge=1, le=MOST_FOUND)
    as_of: Moment | None = Field(None, description="Leave out what was said later.")


class Found(Told):
    content: str = Field(description="The message, to the byte.")
    role: str
    timestamp: datetime = Field(description="When it was said.")
    pointer: str
    drawer: UUID
    session_id: str = Field(description="The conversation it was said in.")
    score: float = Field(description="Compares within this answer only.")
    signals: dict[str, float] = Field(description="Shares of the score, which add up to it.")


class SearchTold(Told):
    results: list[Found] = Field(description="Best first.")
    recollection: UUID | None
    notes: list[str]


@tool("Search", "read")
def search(caller: Caller, asked: SearchAsked) -> SearchTold:
    """The messages that answer a question best, whole, each with why it was found."""
    palace = caller.palace(asked.user_id)
    if palace is None:
        return SearchTold.model_validate(representations.NOTHING_FOUND)
    found = recalling.recall(
        palace, recalling.RecallRequest(asked.query, top_k=asked.limit, as_of=asked.as_of)
    )
    return SearchTold.model_validate(representations.found(found))

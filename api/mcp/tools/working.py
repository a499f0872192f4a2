"""Working memory: scratch entries under paths, each for a while."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from api.mcp.callers import Caller
from api.mcp.fields import MOST_FOUND, OfSomebody, Text, Told
from api.mcp.registry import tool
from api.rest.problems import Problem
from palace.working.entries import Entry, entries_under, get_entry, set_entry
from palace.working.names import Namespace
from palace.working.search import LIMIT, search_entries

OWN = "session/mcp"
PREFIX = "Under which paths to look, such as session/<id> or patrol; empty: everywhere."


class EntryTold(Told):
    key: str = Field(description="Its full path.")
    value: str
    stored_at: datetime
    expires_at: datetime = Field(description="Unless it is used before.")
    category: str
    tags: list[str]


class EntriesTold(Told):
    entries: list[EntryTold]


class SaveAsked(OfSomebody):
    key: Text = Field(description="A name, such as emails_inbox.")
    data: Text = Field(description="Kept to the byte, up to 256 KB.")
    ttl_minutes: float | None = Field(
        None, description="For how long, after each use; five minutes unless set otherwise."
    )
    category: Text = ""
    tags: list[Text] = []
    namespace: Text = Field(
        OWN, description="Whose entry it is: session/<id>, patrol/<name> or subagent/<id>."
    )


@tool("Save to working memory", "write", destroys=True, again_is_same=True)
def save_to_working_memory(caller: Caller, asked: SaveAsked) -> EntryTold:
    """Put a text aside for a while, in place of what was under this key.

    For results too large for the conversation, drafts, and what is handed from one agent to
    another. For what is to last, use remember.
    """
    own = Namespace.read(asked.namespace)
    entry = set_entry(
        caller.palace_made(asked.user_id),
        own,
        asked.key,
        asked.data,
        ttl_seconds=None if asked.ttl_minutes is None else asked.ttl_minutes * 60,
        category=asked.category,
        tags=asked.tags,
    )
    return _told(entry)


class GetAsked(OfSomebody):
    key: Text = Field(description="Plain, within the namespace; or a full path.")
    namespace: Text = Field(OWN, description="For plain keys: session/<id> and the like.")


# Its time begins anew, which is what reading is for: it stays a read.
@tool("Get from working memory", "read")
def get_from_working_memory(caller: Caller, asked: GetAsked) -> EntryTold:
    """What was put aside under a key; its time begins anew."""
    own, palace = Namespace.read(asked.namespace), caller.palace(asked.user_id)
    entry = get_entry(palace, own, asked.key) if palace else None
    if entry is None:
        said = "There is nothing under this key, or its time is over; list those there are."
        raise Problem(404, "no_such_entry", said)
    return _told(entry)


class ListAsked(OfSomebody):
    namespace: Text = Field(OWN, description=PREFIX)


@tool("List working memory", "read")
def list_working_memory(caller: Caller, asked: ListAsked) -> EntriesTold:
    """What was put aside under a path, by key."""
    palace = caller.palace(asked.user_id)
    entries = entries_under(palace, asked.namespace) if palace else []
    return EntriesTold(entries=[_told(entry) for entry in entries])


class SearchWorkingAsked(OfSomebody):
    query: Text = Field("", description="Words; without any, the newest come first.")
    category: Text = Field("", description="It, or one below it.")
    tags: list[Text] = Field([], description="An entry has all of them.")
    namespace: Text = Field(OWN, description=PREFIX)
    limit: int = Field(LIMIT, ge=1, le=MOST_FOUND)


@tool("Search working memory", "read")
def search_working_memory(caller: Caller, asked: SearchWorkingAsked) -> EntriesTold:
    """What was put aside and has one of these words, best first."""
    palace = caller.palace(asked.user_id)
    if palace is None:
        return EntriesTold(entries=[])
    found = search_entries(
        palace,
        query=asked.query,
        category=asked.category,
        tags=asked.tags,
        prefix=asked.namespace,
        limit=asked.limit,
    )
    return EntriesTold(entries=[_told(each.entry) for each in found])


def _told(entry: Entry) -> EntryTold:
    return EntryTold(
        key=str(entry.path),
        value=entry.value,
        stored_at=entry.stored_at,
        expires_at=entry.expires_at,
        category=entry.category,
        tags=list(entry.tags),
    )

"""Working memory tools: scratch entries under paths that expire."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from api.mcp.registry import MOST_FOUND, Caller, PalaceRequest, Text, ToolResponse, Words, tool
from api.rest.problems import Problem
from palace.working import (
    DEFAULT_LIMIT,
    Entry,
    Namespace,
    entries_under,
    get_entry,
    search_entries,
    set_entry,
)

OWN = "session/mcp"
PREFIX = "Path prefix, such as session/<id> or patrol; empty: all."


class EntryFields(ToolResponse):
    key: str = Field(description="The full path.")
    value: str
    stored_at: datetime
    expires_at: datetime = Field(description="Each use extends it.")
    category: str
    tags: list[str]


class EntriesResponse(ToolResponse):
    entries: list[EntryFields]


class SaveEntryRequest(PalaceRequest):
    key: Text = Field(description="A name, such as emails_inbox.")
    data: Text = Field(description="Stored verbatim, up to 256 KB.")
    ttl_minutes: float | None = Field(
        None, description="Lifetime after each use; by default five minutes."
    )
    category: Text = ""
    tags: list[Text] = []
    namespace: Text = Field(
        OWN, description="Namespace: session/<id>, patrol/<name> or subagent/<id>."
    )


@tool("Save to working memory", "write", destroys=True, again_is_same=True)
def save_to_working_memory(caller: Caller, request: SaveEntryRequest) -> EntryFields:
    """Store a text temporarily under a key, replacing any previous one.

    For results too large for the conversation, drafts, and data passed from one agent to
    another. To store something permanently, use remember.
    """
    own = Namespace.read(request.namespace)
    entry = set_entry(
        caller.palace_made(request.user_id),
        own,
        request.key,
        request.data,
        ttl_seconds=None if request.ttl_minutes is None else request.ttl_minutes * 60,
        category=request.category,
        tags=request.tags,
    )
    return _fields(entry)


class GetEntryRequest(PalaceRequest):
    key: Text = Field(description="A name within the namespace, or a full path.")
    namespace: Text = Field(OWN, description="For plain names: session/<id> and so on.")


# Reading renews the expiry; it still counts as a read.
@tool("Get from working memory", "read")
def get_from_working_memory(caller: Caller, request: GetEntryRequest) -> EntryFields:
    """Get the text stored under a key; this renews its expiry."""
    own, palace = Namespace.read(request.namespace), caller.palace(request.user_id)
    entry = get_entry(palace, own, request.key) if palace else None
    if entry is None:
        said = "There is no entry under this key, or it expired; list the entries."
        raise Problem(404, "no_such_entry", said)
    return _fields(entry)


class ListEntriesRequest(PalaceRequest):
    namespace: Text = Field(OWN, description=PREFIX)


@tool("List working memory", "read")
def list_working_memory(caller: Caller, request: ListEntriesRequest) -> EntriesResponse:
    """List the entries under a path, by key."""
    palace = caller.palace(request.user_id)
    entries = entries_under(palace, request.namespace) if palace else []
    return EntriesResponse(entries=[_fields(entry) for entry in entries])


class SearchEntriesRequest(PalaceRequest):
    query: Words = Field("", description="Words; if empty, the newest entries first.")
    category: Text = Field("", description="This category or one below it.")
    tags: list[Text] = Field([], description="Entries must have all of them.")
    namespace: Text = Field(OWN, description=PREFIX)
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MOST_FOUND)


@tool("Search working memory", "read")
def search_working_memory(caller: Caller, request: SearchEntriesRequest) -> EntriesResponse:
    """Find entries that contain any of these words, best first."""
    palace = caller.palace(request.user_id)
    if palace is None:
        return EntriesResponse(entries=[])
    found = search_entries(
        palace,
        query=request.query,
        category=request.category,
        tags=request.tags,
        prefix=request.namespace,
        limit=request.limit,
    )
    return EntriesResponse(entries=[_fields(each.entry) for each in found])


def _fields(entry: Entry) -> EntryFields:
    return EntryFields(
        key=str(entry.path),
        value=entry.value,
        stored_at=entry.stored_at,
        expires_at=entry.expires_at,
        category=entry.category,
        tags=list(entry.tags),
    )

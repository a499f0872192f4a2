"""Working memory, by namespace and conversation, and episodes, the latest first or by a question.

Reading working memory here does not extend any expiry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from language.errors import BadInput, WorkingMemoryAway
from language.storable import normalize_query
from llm.errors import LLMError
from palace.knowledge.episodes import episodes_of_conversation, search_episodes
from palace.models import Episode, Palace, Room
from palace.views.shared.query_params import NumberedPage
from palace.working import (
    MOST_FIELDS_BYTES,
    ConversationFields,
    Entry,
    Namespace,
    delete_entry,
    delete_fields,
    entries_in,
    entries_under,
    list_conversations,
    namespaces,
    peek_conversation,
    prefix_of,
    search_entries,
    time_left,
)
from settings_app.pages import PageRequest, signed_in_action, signed_in_page

# The most namespaces on a page, entries found, and conversations.
NAMESPACES_SHOWN, FOUND_SHOWN, CONVERSATIONS_SHOWN = 20, 50, 20
# Characters of a value in a list; its own page shows it whole.
CHARS_SHOWN = 600
# JSON up to this length stays on one line.
ON_ONE_LINE = 60


@dataclass(frozen=True, slots=True)
class ShortText:
    """A value and the time left until it expires.

    Attributes:
        more: The number of characters that are not shown.
    """

    text: str
    more: int

    @classmethod
    def of(cls, text: str, *, whole: bool) -> ShortText:
        end = len(text) if whole else CHARS_SHOWN
        return cls(text[:end], max(0, len(text) - end))


@dataclass(frozen=True, slots=True)
class EntryRow:
    entry: Entry
    value: ShortText
    left: str


@dataclass(frozen=True, slots=True)
class NotesRow:
    """
    Attributes:
        share: The used share of the size limit, in per cent.
    """

    noted: ConversationFields
    fields: list[tuple[str, ShortText]]
    share: int
    left: str


@signed_in_page
def working_memory(request: PageRequest) -> HttpResponse:
    """`?q=` searches entries, `?under=` filters by path, `?conversation=` shows one."""
    palace = Palace.objects.own(request.user)
    asked = {name: request.GET.get(name, "").strip() for name in ("q", "under", "conversation")}
    context: dict[str, Any] = {
        **asked,
        "is_narrowed": any(asked.values()),
        "most_bytes": MOST_FIELDS_BYTES,
    }
    try:
        return _page(request, {**context, **_found(palace, **asked)})
    except BadInput as error:
        return _page(request, {**context, "error": str(error)}, status=400)
    except WorkingMemoryAway as error:
        return _page(request, {**context, "away": str(error)}, status=503)


@signed_in_action
def delete_working(request: PageRequest) -> HttpResponse:
    """Delete the entry at `path`, or one `field` or all fields of a `conversation`."""
    palace = Palace.objects.own(request.user)
    sent = request.POST
    try:
        if "path" in sent:
            what, was_there = _delete_entry(palace, sent["path"])
        elif "conversation" in sent:
            what, was_there = _delete_fields(palace, sent["conversation"], sent.get("field"))
        else:
            raise Http404
    except BadInput:
        raise Http404 from None
    except WorkingMemoryAway as error:
        messages.error(request, str(error))
    else:
        _tell(request, what, was_there=was_there)
    back = {name: sent[name] for name in ("q", "under") if sent.get(name)}
    return redirect(f"{reverse('working_memory')}{'?' if back else ''}{urlencode(back)}")


def _page(request: PageRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return render(request, "palace/working.html", context, status=status)


def _found(palace: Palace, *, q: str, under: str, conversation: str) -> dict[str, Any]:
    now = timezone.now()
    if conversation:
        noted = peek_conversation(palace, conversation)
        return {"notes": [_notes(noted, now, whole=True)] if noted else []}
    if q:
        found = search_entries(palace, query=q, prefix=under, limit=FOUND_SHOWN)
        return {"found": [_entry(one.entry, now) for one in found], "most_found": FOUND_SHOWN}
    if under:
        return {"spaces": _by_namespace(entries_under(palace, under), now, under=under)}
    spaces = namespaces(palace)
    all_noted, total = list_conversations(palace, limit=CONVERSATIONS_SHOWN)
    return {
        "spaces": _by_namespace(entries_in(palace, spaces[:NAMESPACES_SHOWN]), now),
        "other_spaces": spaces[NAMESPACES_SHOWN:],
        "notes": [_notes(noted, now) for noted in all_noted],
        "other_notes": total - len(all_noted),
    }


def _by_namespace(
    entries: Sequence[Entry], now: datetime, *, under: str = ""
) -> list[tuple[Namespace, list[EntryRow]]]:
    by_space = groupby(entries, key=lambda entry: entry.path.namespace)
    return [(space, _entries(group, now, under=under)) for space, group in by_space]


def _entries(entries: Iterable[Entry], now: datetime, *, under: str) -> list[EntryRow]:
    return [_entry(entry, now, whole=str(entry.path) == under) for entry in entries]


def _entry(entry: Entry, now: datetime, *, whole: bool = False) -> EntryRow:
    value = ShortText.of(entry.value, whole=whole)
    return EntryRow(entry, value, time_left(entry.expires_at - now))


def _notes(noted: ConversationFields, now: datetime, *, whole: bool = False) -> NotesRow:
    fields = [(name, _field(value, whole=whole)) for name, value in noted.fields.items()]
    share = -(-noted.size * 100 // MOST_FIELDS_BYTES)
    return NotesRow(noted, fields, share, time_left(noted.expires_at - now))


def _field(value: object, *, whole: bool) -> ShortText:
    """A text as it is, other values as JSON."""
    if isinstance(value, str):
        return ShortText.of(value, whole=whole)
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > ON_ONE_LINE:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return ShortText.of(text, whole=whole)


def _delete_entry(palace: Palace, path: str) -> tuple[str, bool]:
    parts = prefix_of(path)
    if len(parts) < 3:
        raise Http404
    return path, delete_entry(palace, Namespace(*parts[:2]), path)


def _delete_fields(palace: Palace, conversation: str, field: str | None) -> tuple[str, bool]:
    if field is None:
        return f"All that was noted of {conversation}", bool(delete_fields(palace, conversation))
    return f"{field} of {conversation}", bool(delete_fields(palace, conversation, [field]))


def _tell(request: PageRequest, what: str, *, was_there: bool) -> None:
    if was_there:
        messages.success(request, f"{what} is deleted.")
    else:
        messages.info(request, f"{what} is not there: it has expired, or was deleted already.")


FOUND = 20


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode as pages show it.

    Attributes:
        lines: The lines of its summary.
        room: The room of its conversation; None without one here.
        cosine: Its similarity to the question; None without a question.
    """

    episode: Episode
    lines: Sequence[str]
    room: Room | None = None
    cosine: float | None = None

    @property
    def decisions(self) -> list[str]:
        return [_named(each) for each in self.episode.key_decisions]

    @property
    def entities(self) -> list[str]:
        return [_named(each) for each in self.episode.entities]

    @property
    def tools(self) -> list[str]:
        return [_named(each) for each in self.episode.tools]


@signed_in_page
def episodes(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    query = normalize_query(request.GET.get("q", ""))
    context: dict[str, object] = {"query": query}
    status = 200
    if query:
        try:
            context["rows"] = _with_rooms(palace, search_episodes(palace, query, k=FOUND))
        except LLMError as error:
            context |= {"error": f"Nothing could be searched. {error}", "rows": []}
            status = 503
    else:
        kept = Episode.objects.within(palace).kept()
        latest = kept.order_by(F("ended_at").desc(nulls_last=True), "-pk")
        page = NumberedPage(latest, request.GET.get("page"))
        context |= {"page": page, "rows": _with_rooms(palace, [(row, None) for row in page.rows])}
    return render(request, "palace/episodes.html", context, status=status)


def episodes_of(palace: Palace, room: Room) -> list[EpisodeRow]:
    """The episodes of a room's conversation, the oldest first."""
    found = episodes_of_conversation(palace, room.external_id, source=room.source)
    return [EpisodeRow(episode, episode.summary.splitlines()) for episode in found]


def _with_rooms(palace: Palace, found: Iterable[tuple[Episode, float | None]]) -> list[EpisodeRow]:
    pairs = list(found)
    wanted = {episode.conversation for episode, _ in pairs}
    rooms = Room.objects.within(palace).filter(external_id__in=wanted).select_related("wing")
    by_key: dict[tuple[str, str], Room] = {}
    for room in rooms.order_by("pk"):
        by_key.setdefault((room.source, room.external_id), room)
        by_key.setdefault(("", room.external_id), room)
    return [
        EpisodeRow(
            episode,
            episode.summary.splitlines(),
            by_key.get((episode.source, episode.conversation)),
            cosine,
        )
        for episode, cosine in pairs
    ]


def _named(entry: object) -> str:
    """An entry of a caller's list as text; an object as its name."""
    if isinstance(entry, dict):
        entry = entry.get("name") or entry.get("title") or entry.get("id") or entry
    return str(entry)

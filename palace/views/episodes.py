"""Episodes: the latest first, or those closest to a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import render

from language.storable import normalize_query
from llm.errors import LLMError
from palace.knowledge.episodes import episodes_of_conversation, search_episodes
from palace.models import Episode, Palace, Room
from palace.views.shared.pagination import NumberedPage
from settings_app.pages import PageRequest, signed_in_page

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

"""Go anywhere: one box that finds pages, places, people, facts and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from language.english.grammatical_person import to_second_person
from language.errors import BadPointer, PalaceError
from palace.models import Entity, Fact, Palace, Pointer, Room, Wing
from palace.queries.facts import named_like
from palace.queries.places import find_by_pointer
from palace.recall import RecallRequest, recall
from palace.views.facts.filters import close_in_meaning
from palace.views.shared.frame_tags import ACCOUNT, MAIN
from palace.views.shared.palace_tags import excerpt, said_by
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page

# The most entries of one kind, and the fewest letters by which messages are searched.
MOST_EACH = 5
FEWEST_LETTERS = 3
MOST_LETTERS = 200

# Further pages and actions: URL name, label, icon, and other words that people look for.
PAGES = (
    ("episodes", "Summaries of conversations", "room", "episodes"),
    ("fact_changes", "What changed in your facts", "clock", "history"),
    ("recall_cases", "Cases: searches you marked", "check", "evaluation tests"),
    ("working_memory", "Working memory", "pen", "developers notes"),
    ("agents", "Agents", "agent", "assistants"),
    ("model_settings", "Model", "settings", "provider key language"),
    ("model_uses", "What the model is asked", "settings", "privacy consent price cost uses"),
    ("sent", "Sent: what left this machine", "send", "privacy log requests"),
    ("data_settings", "Your data", "import", "export delete download backup"),
    ("api_keys", "API keys", "key", "developers tokens"),
    ("connected_apps", "Connected apps", "key", "developers oauth connectors disconnect"),
    ("webhooks", "Webhooks", "send", "developers"),
    ("costs", "What models cost", "note", "usage tokens money"),
    ("dream_settings", "Tidying up at night", "dream", "dreams consolidation"),
    ("account", "Account and password", "person", "profile sign-in"),
    ("keyboard", "Keyboard shortcuts", "key", "keys help"),
)
# What one can do: URL name, anchor, label, icon, and other words that people look for.
ACTIONS = (
    ("chat", "#text", "Start a new conversation", "plus", "chat talk ask say message"),
    ("imports", "", "Import a file", "import", "upload bring conversations"),
    ("inbox", "#dream", "Tidy up now", "dream", "consolidate duplicates"),
    ("model_settings", "", "Connect a model", "settings", "provider key language"),
    ("data_settings", "", "Download your palace", "import", "export backup data"),
    ("api_keys", "", "Make an API key", "key", "token developers"),
    ("trash", "", "Empty the trash", "trash", "delete purge"),
)
ACTIONS_AT_ONCE = 3
# The states of a room on the plan.
COMPONENT_ROOMS = (
    ("This month", "age-0"),
    ("This quarter", "age-1"),
    ("This year", "age-2"),
    ("Three years", "age-3"),
    ("Older", "age-4"),
    ("A hit", "age-0 lit"),
    ("Later", "age-0 later"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One place to go; `note` says more about it."""

    address: str
    label: str
    icon: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    entries: list[Entry]


@signed_in_page
def go(request: PageRequest) -> HttpResponse:
    """The box with what it finds; without words, recent rooms and the main pages."""
    query = " ".join(request.GET.get("q", "").replace("\0", " ").split())[:MOST_LETTERS]
    palace = Palace.objects.own(request.user)
    context = {"query": query, "sections": [each for each in _found(palace, query) if each.entries]}
    return render_page_or_part(request, "palace/go.html", "found", context)


@signed_in_page
def keyboard(request: PageRequest) -> HttpResponse:
    links = [(key, label) for _, label, _, key in (*MAIN, *ACCOUNT)]
    return render(request, "palace/keyboard.html", {"links": links})


@signed_in_page
def components(request: PageRequest) -> HttpResponse:
    """Every component of the pages in every state, for those who change them."""
    rooms = [
        {"name": name, "state": state, "x": 44 * column + 2, "middle": 44 * column + 24, "y": y}
        for (column, y), (name, state) in zip(
            product(range(4), (2, 42)), COMPONENT_ROOMS, strict=False
        )
    ]
    return render(request, "palace/components.html", {"rooms": rooms})


def _found(palace: Palace, query: str) -> Iterator[Section]:
    if not query:
        yield Section("Recent", _recent(palace))
        yield Section("Actions", _actions("")[:ACTIONS_AT_ONCE])
        yield Section("Pages", _pages(""))
        return
    yield Section("Pages", _pages(query)[:MOST_EACH])
    yield Section("Actions", _actions(query)[:MOST_EACH])
    yield Section("Places", [*_by_pointer(palace, query), *_wings(palace, query)])
    yield Section("People and things", _entities(palace, query))
    yield Section("Facts", _facts(palace, query))
    yield Section("Messages", _messages(palace, query))
    everything = f"{reverse('memory')}?{urlencode({'q': query})}"
    yield Section("Search", [Entry(everything, f"Search all messages for “{query}”", "search")])


def _actions(query: str) -> list[Entry]:
    words = query.casefold().split()
    return [
        Entry(reverse(name) + anchor, label, icon)
        for name, anchor, label, icon, also in ACTIONS
        if all(word in f"{label} {also}".casefold() for word in words)
    ]


def _pages(query: str) -> list[Entry]:
    words = query.casefold().split()
    known = [(name, label, icon, "") for name, label, icon, _ in (*MAIN, *ACCOUNT)]
    return [
        Entry(reverse(name), label, icon)
        for name, label, icon, also in (*known, *(PAGES if query else ()))
        if all(word in f"{label} {also}".casefold() for word in words)
    ]


def _recent(palace: Palace) -> list[Entry]:
    rooms = Room.objects.within(palace).select_related("wing").order_by("-ended_at", "-pk")
    return [
        Entry(room.get_absolute_url(), room.title, "room", room.wing.name)
        for room in rooms[:MOST_EACH]
    ]


def _by_pointer(palace: Palace, query: str) -> list[Entry]:
    try:
        drawer = find_by_pointer(palace, Pointer.parse(query))
    except BadPointer:
        return []
    if drawer is None:
        return []
    return [Entry(drawer.get_absolute_url(), str(drawer.pointer), "drawer", excerpt(drawer.text))]


def _wings(palace: Palace, query: str) -> list[Entry]:
    wings = Wing.objects.within(palace).filter(_has_all("name", query)).order_by("name")
    rooms = Room.objects.within(palace).filter(_has_all("title", query)).select_related("wing")
    return [
        *(
            Entry(wing.get_absolute_url(), wing.name, wing.kind, "Wing")
            for wing in wings[:MOST_EACH]
        ),
        *(
            Entry(room.get_absolute_url(), room.title, "room", room.wing.name)
            for room in rooms.order_by("-ended_at", "-pk")[:MOST_EACH]
        ),
    ]


def _entities(palace: Palace, query: str) -> list[Entry]:
    found = Entity.objects.filter(named_like(query), palace=palace)
    return [
        Entry(each.get_absolute_url(), each.display_name, each.kind, each.get_kind_display())
        for each in found.order_by("name", "pk")[:MOST_EACH]
    ]


def _facts(palace: Palace, query: str) -> list[Entry]:
    active = Fact.objects.within(palace).active()
    has_words = active.filter(_has_all("text", query))
    found = list(has_words.order_by("-recorded_at", "-pk")[:MOST_EACH])
    if len(query) >= FEWEST_LETTERS and (room := MOST_EACH - len(found)):
        others = active.exclude(pk__in=[each.pk for each in found])
        found += close_in_meaning(palace, query, others, at_most=room)
    return [Entry(each.get_absolute_url(), to_second_person(each.text), "fact") for each in found]


def _messages(palace: Palace, query: str) -> list[Entry]:
    if len(query) < FEWEST_LETTERS:
        return []
    try:
        # While one types, nothing is put on record.
        request = RecallRequest(query, top_k=MOST_EACH, rerank=False, store_trace=False)
        hits = recall(palace, request).hits
    except PalaceError:
        return []
    return [
        Entry(
            hit.drawer.get_absolute_url(),
            excerpt(hit.drawer.text[slice(*hit.passage)]),
            "drawer",
            f"{said_by(hit.drawer)}, {hit.drawer.room.title}",
        )
        for hit in hits
    ]


def _has_all(field: str, query: str) -> Q:
    condition = Q()
    for word in query.split():
        condition &= Q((f"{field}__icontains", word))
    return condition

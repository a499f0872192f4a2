"""The palace at a glance: the search with its results, the plan, and what happened last.

The hits of a search are rows: each with its line, one reason and its signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from itertools import chain
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import capfirst
from django.utils.safestring import SafeString, mark_safe
from django_htmx.http import HttpResponseClientRedirect, push_url, replace_url

from language.analyzer import all_readings, language_of
from language.english.questions import read_intent
from language.errors import BadPointer, PalaceError
from palace.models import Drawer, Fact, ImportJob, Palace, Pointer
from palace.queries.places import emptied_wings, find_by_pointer, wing_rows
from palace.recall import Hit, Query, describe_move, recall
from palace.recall.recipes import SIGNALS, label_of
from palace.views.activity import recent_activity
from palace.views.facts.filters import asked_of_facts, close_in_meaning
from palace.views.search import WORD, Search, filter_choices, snippet_of, terms_of_word
from palace.views.shared.palace_tags import icon, marked, said_by, second_person
from palace.views.shared.place_parts import lit_by, plan_context, sources_of, totals
from palace.views.shared.query_params import ChosenDay, query_string
from settings_app.fast_reverse import address_of
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page
from settings_app.row_tags import at_minute

# Smaller shares have no visible bar, and a figure of 0.00.
SMALLEST_SHARE = 0.005
# The length of a hit's line, and how much of a text is searched for the question's words.
LINE_LENGTH, SEARCHED_LENGTH = 170, 20_000
# The most words that a reason quotes.
WORDS_QUOTED = 3
# Reasons by the signal that counts most, where nothing plainer can be said.
REASONS = {
    "meaning": "Close in meaning",
    "agreement": "Close in meaning",
    "words": "Shares rare words with it",
    "exchange": "Stands beside a message that fits",
    "room": "Its whole conversation is about this",
    "preference": "States a lasting wish or taste",
}


class Bar(NamedTuple):
    """One signal's share, drawn on a scale of 0 to 100 that all hits of a recall share."""

    label: str
    share: float
    zero: float
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.share:+.2f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class HitRow:
    """
    Attributes:
        place: From 1, as on the plan.
        reason: Why it was found, in a sentence.
    """

    hit: Hit
    place: int
    snippet: tuple[tuple[str, bool], ...]
    reason: str
    bars: tuple[Bar, ...]

    @property
    def url(self) -> str:
        start, end = self.hit.passage
        return f"{self.hit.drawer.get_absolute_url()}?passage={start}-{end}"

    @property
    def item(self) -> SafeString:
        """Its place in the list, in one piece: a page has twenty, with two hundred bars."""
        drawer, pointer = self.hit.drawer, self.hit.pointer
        place = f'{escape(drawer.room.wing.name)} <span aria-hidden="true">›</span>'
        said = f"{escape(said_by(drawer))}, {at_minute(drawer.said_at)}"
        return mark_safe(  # noqa: S308 - its parts are escaped.
            f'<li class="hit">\n<article>\n<p class="hit-number" aria-hidden="true">{self.place}'
            f'</p>\n<div class="hit-body">\n<h3><a href="{self.url}">{said}</a></h3>\n'
            f'<p class="snippet">{marked(self.snippet)}</p>\n{_outdated(self.hit)}'
            '<div class="hit-line">\n<p class="hit-place">'
            f'<span class="reason">{escape(self.reason)}</span>'
            f" <span>{place} {escape(drawer.room.title)}</span></p>\n"
            f'<div class="hit-foot">\n<span class="pointer">{pointer}</span>\n{self._why}'
            f'<a class="more-like" data-no-row href="{address_of("memory")}?like={drawer.uuid}">'
            f'More like this<span class="unseen">: {pointer}</span></a>\n</div>\n</div>\n</div>\n'
            f'</article>\n<input class="pick" form="selected" type="checkbox" name="drawer"'
            f' value="{drawer.uuid}" aria-label="Select {pointer}">\n</li>\n'
        )

    @property
    def _why(self) -> str:
        """The shares of its score, and how a reranking model moved it."""
        before = self.hit.place_before
        moved = "" if before is None else describe_move(before, self.place)
        said = f'<p class="moved">{escape(moved)}</p>\n' if moved else ""
        return (
            f'<details class="why">\n<summary data-no-row>{icon("chevron")}<span>Why'
            f'<span class="unseen"> {self.hit.pointer} came in place {self.place}</span></span>'
            f'</summary>\n<p class="score">score {self.hit.score:.2f}</p>\n'
            f'<dl class="bars">{"".join(map(_drawn, self.bars))}</dl>\n{said}</details>\n'
        )


def _outdated(hit: Hit) -> str:
    said = hit.outdated.facts if hit.outdated else ()
    return "".join(
        f'<p class="outdated">{escape(capfirst(ended))}: {escape(second_person(text))}</p>\n'
        for ended, text in said
    )


def hit_rows(hits: Sequence[Hit], query: str, *, is_like: bool = False) -> list[HitRow]:
    """The hits as rows, in their order."""
    terms = all_readings(query)
    names = () if is_like else read_intent(query).names
    shares = [0.0, *chain.from_iterable(hit.signals.values() for hit in hits)]
    low, high = min(shares), max(shares)
    by_time = sum(hit.signals.get("time", 0) >= SMALLEST_SHARE for hit in hits)
    is_time_telling = by_time < max(len(hits), 2)
    return [
        HitRow(
            hit,
            place,
            snippet_of(hit.drawer.text, _stretch(hit, terms), terms, LINE_LENGTH),
            reason_of(hit, set() if is_like else terms, names, is_time_telling=is_time_telling),
            _bars(hit.signals, low, high),
        )
        for place, hit in enumerate(hits, start=1)
    ]


def _stretch(hit: Hit, terms: set[str]) -> tuple[int, int]:
    """The passage, unless the question's words stand only elsewhere in the text."""
    text = hit.drawer.text
    start, end = hit.passage
    is_whole = (start, end) == (0, len(text))
    if is_whole or _words_in(text[start:end], terms) or not _words_in(text, terms):
        return hit.passage
    return 0, min(len(text), SEARCHED_LENGTH)


def reason_of(hit: Hit, terms: set[str], names: Sequence[str], *, is_time_telling: bool) -> str:
    """The plainest true reason for a hit, in one sentence.

    Args:
        terms: Of the question; none if it was another message.
        names: The names in the question.
        is_time_telling: Not all hits are from the time that is asked about, or there is only one.
    """
    text = hit.drawer.text
    if is_time_telling and hit.signals.get("time", 0) >= SMALLEST_SHARE:
        return "From the time you asked about"
    if named := [name for name in names if name.casefold() in text.casefold()]:
        return f"Names {named[0]}"
    words = _words_in(text, terms)
    if words and len(words) == len(terms):
        return "Says the words you typed"
    signal = max(REASONS, key=lambda name: hit.signals.get(name, 0.0))
    if hit.signals.get(signal, 0.0) < SMALLEST_SHARE:
        return "The nearest there is"
    if signal == "words" and words:
        quoted = " and ".join(f"“{word}”" for word in list(words.values())[:WORDS_QUOTED])
        return f"Says {quoted}"
    return REASONS[signal]


def _words_in(text: str, terms: set[str]) -> dict[str, str]:
    """Which of the terms the text has, each as it first spells it."""
    found: dict[str, str] = {}
    if terms:
        language = language_of(text)
        for match in WORD.finditer(text, 0, SEARCHED_LENGTH):
            for term in terms & terms_of_word(match[0], language):
                found.setdefault(term, match[0])
            if len(found) == len(terms):
                break
    return found


def explained(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a bar somewhere in `hits`."""
    drawn = {name for hit in hits for name, share in hit.signals.items() if _is_drawn(share)}
    return [words for name, words in SIGNALS.items() if name in drawn]


def _is_drawn(share: float) -> bool:
    return abs(share) >= SMALLEST_SHARE


def _bars(signals: Mapping[str, float], low: float, high: float) -> tuple[Bar, ...]:
    scale = 100 / ((high - low) or 1)
    zero = round(-low * scale, 1)
    return tuple(
        Bar(
            label_of(name),
            share,
            zero,
            start=round((min(share, 0) - low) * scale, 1),
            width=round(abs(share) * scale, 1),
        )
        for name, share in signals.items()
        if _is_drawn(share)
    )


def _drawn(bar: Bar) -> str:
    against = " against" if bar.share < 0 else ""
    zero = f'<path d="M{bar.zero} -2V8"></path>' if bar.zero else ""
    return (
        f"<div><dt>{escape(bar.label)}</dt><dd>"
        f'<svg class="bar{against}" viewBox="0 0 100 6" preserveAspectRatio="none"'
        f' aria-hidden="true"><rect x="{bar.start}" width="{bar.width}" height="6"></rect>{zero}'
        f'</svg> <span class="figure">{bar.figure}</span></dd></div>'
    )


# The elements that ask for results alone: the box while one types, and the filters.
LIVE = ("q", "filters")
FACTS_SHOWN = 3
# While an import runs, the plan of a palace with fewer drawers is drawn again as it grows.
GROWS_UNTIL = 2000
# The palace as a list in place of the floor plan.
AS_LIST = "list"


@signed_in_page
def memory(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    asked = Search.read(palace, request.GET)
    # While one types, only the results are exchanged, and nothing is put on record.
    is_live = request.htmx.trigger in LIVE
    drawer = None if asked.words is None else _by_pointer(palace, asked.words)
    if drawer is not None and not is_live:
        if request.htmx:
            return HttpResponseClientRedirect(drawer.get_absolute_url())
        return redirect(drawer)
    if not asked.is_asked or (is_live and asked.is_blank):
        return show_memory(request, palace, asked=asked, is_live=is_live)
    return _searched(request, palace, asked, is_live=is_live, drawer=drawer)


def _searched(
    request: PageRequest, palace: Palace, asked: Search, *, is_live: bool, drawer: Drawer | None
) -> HttpResponse:
    """The page with the results of a search.

    Args:
        drawer: The one whose pointer is typed.
    """
    page: dict[str, Any] = {"asked": asked, "query": asked.words, "is_live": is_live}
    until = ChosenDay.read(request.GET).moment
    keeps_trace = not is_live and (asked.like is None or "why" in request.GET)
    # The closest facts; none where drawers are chosen by filters or by what they are like.
    shows_facts = not (is_live or asked.like or asked.is_narrowed)
    beside = asked_of_facts(asked.question) if shows_facts else ""
    try:
        wanted = asked.request(store_trace=keeps_trace)
        found = recall(palace, replace(wanted, as_of=until, beside=beside))
    except PalaceError as error:
        return show_memory(request, palace, **page, error=str(error))
    if "why" in request.GET and keeps_trace:
        return redirect("recall_detail", found.uuid)
    page |= {
        "pointed": drawer,
        "found": found,
        "close_facts": _close_facts(palace, asked, until, found.question) if shows_facts else [],
        "is_kept": keeps_trace,
        "hits": hit_rows(found.hits, found.query, is_like=asked.like is not None),
        "signals": explained(found.hits),
    }
    return show_memory(request, palace, **page)


def _close_facts(
    palace: Palace, asked: Search, until: datetime | None, question: Query | None
) -> list[Fact]:
    then = Fact.objects.within(palace).as_of(true_at=until) if until else None
    return close_in_meaning(palace, asked.question, then, at_most=FACTS_SHOWN, embedded=question)


def show_memory(request: PageRequest, palace: Palace, **search: Any) -> HttpResponse:
    """The page with the results of a search, or its `error`."""
    wings = wing_rows(palace)
    search.setdefault("asked", Search(words=search.get("query")))
    is_list = request.GET.get("view") == AS_LIST
    if is_list or not wings:
        search["emptied"] = emptied_wings(palace, wings)
    if not is_list:
        lit = [hit.drawer.room_id for hit in search["found"].hits] if "found" in search else []
        if asked := request.GET.get("recall"):
            search["recall"], search["sources"] = sources_of(palace, asked)
            lit = lit_by(search["sources"])
        search |= plan_context(palace, wings, request.GET, lit)
    is_live = search.get("is_live", False)
    if not is_live:
        search |= {"totals": totals(wings), **filter_choices(palace, wings, search["asked"])}
    context = {
        **search,
        "wings": wings,
        "grows": not request.GET and sum(row.drawers for row in wings) < GROWS_UNTIL,
        "view": AS_LIST if is_list else "",
        "recent": recent_activity(palace),
        "is_importing": not wings and _is_importing(palace),
    }
    is_bad = "error" in search or ("chosen" in search and search["chosen"].error)
    status = 400 if is_bad else 200
    part = "found" if is_live else "body"
    response = render_page_or_part(request, "palace/memory.html", part, context, status=status)
    if is_live:
        replace_url(response, _own_address(request))
    elif request.htmx:
        push_url(response, _own_address(request))
    return response


def _is_importing(palace: Palace) -> bool:
    running = ImportJob.objects.filter(palace=palace, status=ImportJob.Status.RUNNING)
    return running.exists()


def _own_address(request: PageRequest) -> str:
    """The address of the request without the fields that were left empty."""
    return request.path + query_string(**request.GET.dict())


def _by_pointer(palace: Palace, query: str) -> Drawer | None:
    """A pointer pasted into the search box leads straight to its drawer."""
    try:
        return find_by_pointer(palace, Pointer.parse(query))
    except BadPointer:
        return None

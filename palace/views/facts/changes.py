"""The list of all changes of facts, and changes to several selected facts at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from html import escape
from typing import Self
from urllib.parse import quote
from uuid import UUID

from django.contrib import messages
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf
from django.db.models.lookups import Exact
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from language.errors import FactConflict, NoSuchFact
from language.facts import PREDICATES
from language.storable import storable_label
from palace.curation.deletion import delete_fact
from palace.curation.deletion import restore_fact as restore_with_words
from palace.knowledge.facts import WRONG, by_person
from palace.knowledge.facts.fact_edits import delete
from palace.models import Entity, Fact, FactEvent, Palace
from palace.queries.facts import about_entity, add_quotes
from palace.views.facts.filters import about_named, entity_asked
from palace.views.shared.palace_tags import fact_words, in_words, second_person
from palace.views.shared.query_params import (
    BadDay,
    UncountedPage,
    end_of,
    find_by_uuid,
    query_string,
    read_day,
    start_of,
    way_back,
)
from settings_app.fast_reverse import address_of
from settings_app.pages import (
    NOTHING_SELECTED,
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_page,
)
from settings_app.row_tags import at_minute, counted, shortened

MOST_AT_ONCE = 200
CHANGES = {
    FactEvent.Kind.ADD: "Learnt",
    FactEvent.Kind.UPDATE: "Changed",
    FactEvent.Kind.DELETE: "Dropped",
}
# Other sources are shown by their own names.
DOERS = {
    "mining": "Loci, reading what was said",
    "chat": "Loci, reading what was said",
    "person": "you",
    "trash": "the trash",
    "api": "a program",
    "sdk": "a program",
}
# By whom most changes are made; a list does not say so each time.
USUAL = ("mining", "chat")
# What the local rules give as reason where there is no other.
REPEATING = ("new fact", "it has changed")


@dataclass(frozen=True, slots=True)
class Change:
    """
    Attributes:
        fact: The version it created or ended; None if that was purged.
    """

    event: FactEvent
    fact: Fact | None

    @property
    def item(self) -> SafeString:
        """Its place in the list, in one piece: a page has thirty."""
        said: str = change_lines(self.event, is_listed=True)
        if self.fact:
            said += fact_words(self.fact) + _ways_on(self.fact)
        return mark_safe(f"<li>\n{said}</li>\n")  # noqa: S308 - its parts are escaped.


def change_lines(event: FactEvent, *, is_listed: bool = False) -> SafeString:
    """What has changed, when and why, and by whom.

    Args:
        is_listed: In a list of many, where the usual is not said.
    """
    lines = [f"<strong>{CHANGES[FactEvent.Kind(event.event)]}</strong> {at_minute(event.at)}"]
    if not (is_listed and event.by in USUAL):
        lines[0] += f' <span class="muted">by {escape(DOERS.get(event.by, event.by))}</span>'
    lines[0] = f'<p class="when">{lines[0]}</p>'
    if old := event.old_text:
        text = escape(second_person(old))
        lines.append(f'<p class="old"><span class="unseen">Before: </span><del>{text}</del></p>')
    if new := event.new_text:
        now = f'<span class="unseen">{"Now: " if old else ""}</span>'
        lines.append(f'<p class="new">{now}<ins>{escape(second_person(new))}</ins></p>')
    if not old and not new:
        lines.append('<p class="muted">What it said is deleted for good.</p>')
    if event.why and event.why not in REPEATING:
        lines.append(f'<p class="muted">{escape(event.why[:1].upper() + event.why[1:])}.</p>')
    return mark_safe("\n".join(lines))  # noqa: S308 - its parts are escaped.


def _ways_on(fact: Fact) -> str:
    """Links to the fact, and to the changes about the same or of the same kind."""
    text, name = second_person(fact.text), fact.subject.display_name
    here, predicate = address_of("fact_changes"), in_words(fact.predicate)
    return (
        f'<p class="fact-meta"><a href="{fact.get_absolute_url()}">The whole fact'
        f'<span class="unseen">: {escape(shortened(text, 80))}</span></a>'
        f' <a href="{here}?entity={fact.subject.uuid}"><span class="unseen">changes about </span>'
        f'{escape(name)}</a> <a href="{here}?predicate={quote(fact.predicate, safe="")}">'
        f'<span class="unseen">changes of </span>{escape(predicate)}</a></p>\n'
    )


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The filters in the page's address; without any, all changes.

    Attributes:
        about: A part of a name of the subject or object.
        entity: The subject or object itself.
        predicate: The predicate, as facts store it.
        since, until: Days, inclusive.
        errors: What is wrong with a day, by its parameter.
    """

    kind: str = ""
    about: str = ""
    entity: Entity | None = None
    predicate: str = ""
    since: date | None = None
    until: date | None = None
    texts: tuple[tuple[str, str], ...] = ()
    errors: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, palace: Palace, sent: QueryDict) -> Self:
        """
        Raises:
            Http404: the entity is not in this palace.
        """
        text = {name: storable_label(sent.get(name, "")) for name in _TEXTS}
        days: dict[str, date | None] = {}
        errors: list[tuple[str, str]] = []
        for name in ("since", "until"):
            try:
                days[name] = read_day(text[name])
            except BadDay as bad:
                errors.append((name, str(bad)))
        return cls(
            kind=text["kind"] if text["kind"] in FactEvent.Kind else "",
            about=text["about"],
            entity=entity_asked(palace, text["entity"]),
            predicate="_".join(text["predicate"].lower().split()),
            since=days.get("since"),
            until=days.get("until"),
            texts=tuple((name, text[name]) for name in ("since", "until")),
            errors=tuple(errors),
        )

    @property
    def day_texts(self) -> dict[str, str]:
        return dict(self.texts)

    @property
    def day_errors(self) -> dict[str, str]:
        return dict(self.errors)

    @property
    def is_folded(self) -> bool:
        """Whether only the kind and the entity are filtered."""
        return not (self.about or self.predicate or any(text for _, text in self.texts))

    @property
    def is_empty(self) -> bool:
        return self.is_folded and not self.kind and self.entity is None

    def query(self, **more: str) -> str:
        """The query string, with `more`; empty without filters."""
        asked = {
            "kind": self.kind,
            "about": self.about,
            "entity": str(self.entity.uuid) if self.entity else "",
            "predicate": self.predicate,
            **self.day_texts,
        } | more
        return query_string(**asked)

    def of_kind(self, kind: str) -> ChangeFilter:
        return replace(self, kind=kind)

    def without_entity(self) -> ChangeFilter:
        return replace(self, entity=None)

    def events(self, palace: Palace) -> QuerySet[FactEvent]:
        """The changes that pass the filters, unordered."""
        events = FactEvent.objects.filter(palace=palace)
        if self.kind:
            events = events.filter(event=self.kind)
        if self.since:
            events = events.filter(at__gte=start_of(self.since))
        if self.until:
            events = events.filter(at__lte=end_of(self.until))
        if self.about or self.entity or self.predicate:
            events = events.filter(memory__in=self._facts(palace).values("memory"))
        return events

    def _facts(self, palace: Palace) -> QuerySet[Fact]:
        facts = Fact.objects.within(palace).order_by()
        if self.entity:
            facts = facts.filter(about_entity(self.entity))
        if self.about:
            facts = facts.filter(about_named(self.about))
        return facts.filter(predicate=self.predicate) if self.predicate else facts


_TEXTS = ("kind", "about", "entity", "predicate", "since", "until")


@signed_in_page
def fact_changes(request: PageRequest) -> HttpResponse:
    """The newest first; `?after=` is the cursor."""
    palace = Palace.objects.own(request.user)
    asked = ChangeFilter.read(palace, request.GET)
    found = _behind(palace, asked.events(palace), request.GET.get("after", ""))
    rows = UncountedPage(_with_version(palace, found).order_by("-at", "-pk"))
    context = {
        "asked": asked,
        "rows": _changes(palace, rows.rows),
        "next": asked.query(after=str(rows.rows[-1].uuid)) if rows.has_next else "",
        "goes_on": "after" in request.GET,
        "tabs": _tabs(asked),
        "predicates": PREDICATES,
    }
    status = 400 if asked.errors else 200
    return render_page_or_part(request, "palace/fact_changes.html", "rows", context, status=status)


def _behind(palace: Palace, found: QuerySet[FactEvent], uuid: str) -> QuerySet[FactEvent]:
    """The changes after one in the order of the list; all if there is no such change."""
    mark = find_by_uuid(FactEvent.objects.filter(palace=palace), uuid)
    if mark is None:
        return found
    return found.filter(Q(at__lt=mark.at) | Q(at=mark.at, pk__lt=mark.pk))


def _tabs(asked: ChangeFilter) -> list[tuple[str, str, bool]]:
    """Label, query string, and whether it is the current one."""
    named = [("", "All"), *((str(kind), label) for kind, label in CHANGES.items())]
    return [(label, asked.of_kind(kind).query(), kind == asked.kind) for kind, label in named]


def _with_version(palace: Palace, events: QuerySet[FactEvent]) -> QuerySet[FactEvent]:
    """Each with `version`, a fact's key: the latest version by its time, rather one with its text.

    A memory has as many versions as it was changed, of which a page shows few.
    """
    said = Coalesce(NullIf(OuterRef("new_text"), Value("")), OuterRef("old_text"))
    known = Fact.objects.within(palace).filter(
        memory=OuterRef("memory"), recorded_at__lte=OuterRef("at")
    )
    latest = known.annotate(says_it=Exact(F("text"), said)).order_by(
        "-says_it", "-recorded_at", "-pk"
    )
    return events.annotate(version=Subquery(latest.values("pk")[:1]))


def _changes(palace: Palace, events: Sequence[FactEvent]) -> list[Change]:
    """
    Args:
        events: Those of `_with_version`.
    """
    keys = {event: getattr(event, "version") for event in events}  # noqa: B009 - an annotation.
    versions = Fact.objects.within(palace).select_related("subject")
    by_key = versions.in_bulk([*filter(None, keys.values())])
    add_quotes(palace, by_key.values())
    return [Change(event, by_key.get(key)) for event, key in keys.items()]


@signed_in_action
def selected_facts(request: PageRequest) -> HttpResponse:
    """Do one thing (`do`) to the ticked `fact`s: `wrong`, `forget` or `restore`."""
    palace = Palace.objects.own(request.user)
    do, chosen = request.POST.get("do", ""), _chosen(palace, request)
    if not chosen:
        messages.error(request, NOTHING_SELECTED)
    elif len(chosen) > MOST_AT_ONCE:
        messages.error(request, f"At most {MOST_AT_ONCE} can be selected at once. Select fewer.")
    elif do == "restore":
        _restore(request, palace, chosen)
    elif do in ("wrong", "forget"):
        _drop(request, palace, chosen, do)
    return redirect(way_back(request) or "facts")


def _drop(request: PageRequest, palace: Palace, chosen: list[Fact], do: str) -> None:
    dropped = [fact for fact in chosen if _dropped(palace, fact, do)]
    if not dropped:
        messages.info(request, "There was nothing to do: these facts are inactive already.")
        return
    facts = counted(len(dropped), "fact")
    said = f"{facts} marked as wrong." if do == "wrong" else f"{facts} forgotten."
    context = {"said": said, "dropped": dropped, "next": way_back(request)}
    # Rendering has marked the text as safe; it has figures and ids only.
    messages.success(request, render_to_string("palace/_undo_facts.html", context, request))


def _dropped(palace: Palace, fact: Fact, do: str) -> bool:
    """Whether the fact was active until now."""
    if fact.retired_at:
        return False
    with suppress(NoSuchFact):
        if do == "wrong":
            delete(palace, fact.memory, by_person(fact), why=WRONG)
        else:
            delete_fact(palace, fact.memory, by_person(fact), doors=())
        return True
    return False


def _restore(request: PageRequest, palace: Palace, chosen: list[Fact]) -> None:
    restored = 0
    for fact in chosen:
        # What took its place since stays.
        with suppress(FactConflict):
            restore_with_words(palace, fact, by_person(fact))
            restored += 1
    said = f"{counted(restored, 'fact')} restored."
    if left := len(chosen) - restored:
        said += f" {counted(left, 'fact')} stayed inactive: others have taken their place."
    messages.success(request, said)


def _chosen(palace: Palace, request: PageRequest) -> list[Fact]:
    """The latest version of each ticked fact.

    Raises:
        Http404: a value is no id, or none of them is in this palace.
    """
    try:
        memories = {UUID(each) for each in request.POST.getlist("fact")}
    except ValueError:
        raise Http404 from None
    rows = Fact.objects.within(palace).filter(memory__in=memories).select_related("palace")
    latest = rows.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    found = list(latest)
    if memories and not found:
        raise Http404
    return found

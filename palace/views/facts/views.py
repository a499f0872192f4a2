"""Facts: the list, and one fact with its versions and sources, to edit, delete or restore."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone

from language.facts import PREDICATES
from language.storable import is_storable
from palace import tasks
from palace.curation.deletion import Forgotten, delete_fact, only_sources_of
from palace.curation.deletion import restore_fact as restore_with_words
from palace.curation.trash import Restored
from palace.errors import FactConflict, NoSuchFact
from palace.knowledge.facts import Scope, history
from palace.knowledge.facts.fact_edits import rewrite
from palace.models import Fact, FactQuerySet, Palace, Proposal
from palace.queries.facts import EVER_TRUE, with_quotes
from palace.templatetags.fact_tags import TYPES
from palace.templatetags.palace_tags import counted
from palace.views.facts.filters import CLOCKS, STATES, FactFilter, close_in_meaning
from palace.views.facts.opinion_timeline import OpinionTimeline, timeline_of
from palace.views.shared.pagination import UncountedPage
from palace.views.shared.query_params import find_by_uuid
from settings_app.pages import PageRequest, render_page_or_part, signed_in_action, signed_in_page

UNREAD = (
    "Fact updated. The sentence could not be read as one statement about the same subject, so it "
    "is connected with nothing now."
)
INACTIVE = "This fact is inactive; restore it first."
CLOSE_SHOWN = 8
VERSIONS_SHOWN = 60
EVENTS_SHOWN = 120
OPINIONS_SHOWN = 200
WORDS_SHOWN = 12
LONGEST_TEXT = 2000
CATEGORIES = sorted({predicate.category for predicate in PREDICATES.values()})


@signed_in_page
def facts(request: PageRequest) -> HttpResponse:
    """The latest first; `?after=` is the cursor."""
    palace = Palace.objects.own(request.user)
    asked = FactFilter.read(palace, request.GET)
    found = _behind(palace, asked.facts(palace), request.GET.get("after", ""))
    rows = UncountedPage(with_quotes(found.order_by("-recorded_at", "-pk"), at_most=1))
    context = {
        "asked": asked,
        "list": rows,
        "next": asked.query(after=str(rows.rows[-1].uuid)) if rows.has_next else "",
        "close": _close(palace, asked) if "after" not in request.GET else [],
        "goes_on": "after" in request.GET,
        "tabs": _tabs(asked),
        "states": STATES.items(),
        "clocks": CLOCKS.items(),
        "categories": CATEGORIES,
        "proposals": Proposal.objects.within(palace).waiting().count(),
    }
    status = 400 if asked.error else 200
    return render_page_or_part(request, "palace/facts.html", "rows", context, status=status)


def _close(palace: Palace, asked: FactFilter) -> list[Fact]:
    """Facts without the words, but close to them in meaning."""
    if not asked.words:
        return []
    others = asked.without_words().facts(palace).exclude(pk__in=asked.facts(palace).values("pk"))
    return close_in_meaning(palace, asked.words, others, at_most=CLOSE_SHOWN)


@signed_in_page
def fact_detail(request: PageRequest, memory: UUID) -> HttpResponse:
    """One memory: its versions, their sources, and its history."""
    return show_fact(request, memory)


def show_fact(request: PageRequest, memory: UUID, **form: Any) -> HttpResponse:
    """The page of a fact; after a refused form with its `error` or `conflict`.

    Raises:
        Http404: there is no such memory in this palace.
    """
    palace = Palace.objects.own(request.user)
    versions = _versions(palace, memory)
    active = next((fact for fact in versions if fact.retired_at is None), None)
    shown = active or versions[-1]
    context = {
        "fact": shown,
        "active": active,
        "versions": versions,
        "arc": _arc(palace, shown),
        "proposals": _waiting(palace, memory),
        "events": history(palace, memory)[-EVENTS_SHOWN:],
        "longest": LONGEST_TEXT,
        "own_words": only_sources_of(palace, memory).count() if active else 0,
        "in_its_place": _in_its_place(palace, shown) if form.get("conflict") else None,
        "text": shown.text,
        **form,
    }
    bad = "error" in form or "conflict" in form
    status = 400 if bad else 200
    return render_page_or_part(request, "palace/fact_detail.html", "fact", context, status=status)


def _waiting(palace: Palace, memory: UUID) -> list[Proposal]:
    """Proposals about this memory that can be decided on."""
    rows = Fact.objects.within(palace).active().filter(memory=memory)
    waiting = Proposal.objects.within(palace).waiting()
    return list(waiting.filter(about__palace=palace, about__fact__in=rows).distinct())


def _behind(palace: Palace, found: FactQuerySet, uuid: str) -> FactQuerySet:
    """The facts after one in the order of the list; all if there is no such fact."""
    mark = find_by_uuid(Fact.objects.within(palace), uuid)
    if mark is None:
        return found
    same = Q(recorded_at=mark.recorded_at, pk__lt=mark.pk)
    return found.filter(Q(recorded_at__lt=mark.recorded_at) | same)


def _tabs(asked: FactFilter) -> list[tuple[str, str, bool]]:
    """Label, query string, and whether it is the current one."""
    named = [("", "All"), *((str(name), label) for name, label in TYPES.items())]
    return [(label, asked.of_type(name).query(), name == asked.type) for name, label in named]


def _versions(palace: Palace, memory: UUID) -> list[Fact]:
    """The latest versions, oldest first.

    Raises:
        Http404: there is no such memory in this palace.
    """
    rows = with_quotes(Fact.objects.within(palace).filter(memory=memory), at_most=WORDS_SHOWN)
    latest = list(rows.order_by("-recorded_at", "-pk")[:VERSIONS_SHOWN])
    if not latest:
        raise Http404
    return latest[::-1]


def _arc(palace: Palace, fact: Fact) -> OpinionTimeline | None:
    """All opinions on the subject that were ever true; None unless there are several."""
    if fact.type != Fact.Type.OPINION:
        return None
    matter = Fact.objects.within(palace).filter(
        EVER_TRUE,
        type=fact.type,
        subject=fact.subject_id,
        predicate=fact.predicate,
        agent=fact.agent,
        run=fact.run,
    )
    latest = list(matter.order_by("-recorded_at", "-pk")[:OPINIONS_SHOWN])
    if len(latest) < 2:
        return None
    in_time = sorted(latest, key=lambda one: (one.aspect, one.valid_from or one.recorded_at))
    return timeline_of(in_time, timezone.now())


def _in_its_place(palace: Palace, fact: Fact) -> Fact | None:
    """The active fact in its place, if the predicate has one value at a time."""
    active = Fact.objects.within(palace).active().exclude(memory=fact.memory)
    return active.filter(
        subject=fact.subject_id,
        predicate=fact.predicate,
        aspect=fact.aspect,
        agent=fact.agent,
        run=fact.run,
        single=True,
    ).first()


@signed_in_action
def rewrite_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Correct a memory's sentence; `version` is the row that the form was made from."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    text = " ".join(request.POST.get("text", "").split())
    if active is None:
        messages.error(request, INACTIVE)
        return redirect("fact_detail", memory)
    if error := _wrong_with(text) or _changed_meanwhile(active, request.POST.get("version", "")):
        return show_fact(request, memory, text=text, error=error)
    if text != active.text:
        try:
            new = rewrite(palace, memory, text, _scope(active))
        except NoSuchFact:
            messages.error(request, INACTIVE)
            return redirect("fact_detail", memory)
        except FactConflict as conflict:
            return show_fact(request, memory, text=text, error=str(conflict))
        said = "Fact updated." if new.is_read else UNREAD
        _offer(request, said, "rewrite_fact", new.fact, text=active.text)
    return redirect("fact_detail", memory)


@signed_in_action
def retire_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Delete a memory, and its source drawers if `words` is sent. Both can be restored."""
    palace = Palace.objects.own(request.user)
    doors = None if request.POST.get("words") else ()
    gone: Forgotten | None = None
    if active := _active(palace, memory):
        with suppress(NoSuchFact):
            gone = delete_fact(palace, memory, _scope(active), doors=doors)
    if active and gone:
        _offer(request, _deleted(gone), "restore_fact", active)
    else:
        messages.info(request, "There was nothing to delete: this fact is inactive already.")
    return redirect("fact_detail", memory)


@signed_in_action
def restore_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Restore a memory, in the given version or its latest."""
    palace = Palace.objects.own(request.user)
    version = _version(palace, memory, request.POST.get("version", ""))
    try:
        active, restored = restore_with_words(palace, version, _scope(version))
    except FactConflict as conflict:
        return show_fact(request, memory, conflict=str(conflict))
    tasks.enqueue_mining(restored.unmined)
    _offer(request, _restored(restored), "retire_fact", active, words=restored.drawers > 0)
    return redirect("fact_detail", memory)


def _deleted(gone: Forgotten) -> str:
    if not gone.trashed:
        return "Fact deleted."
    moved = counted(gone.trashed, "message")
    return f"Fact deleted, and {moved} it came from moved to the trash."


def _restored(restored: Restored) -> str:
    if not restored.drawers:
        return "Fact restored."
    return f"Fact restored, and {counted(restored.drawers, 'message')} with it from the trash."


def _active(palace: Palace, memory: UUID) -> Fact | None:
    """
    Raises:
        Http404: there is no such memory in this palace.
    """
    rows = Fact.objects.within(palace).filter(memory=memory)
    active = rows.active().first()
    if active is None and not rows.exists():
        raise Http404
    return active


def _version(palace: Palace, memory: UUID, uuid: str) -> Fact:
    rows = Fact.objects.within(palace).filter(memory=memory).order_by("-recorded_at", "-pk")
    try:
        named = rows.filter(uuid=UUID(uuid)).first() if uuid else rows.first()
    except ValueError:
        named = None
    if named is None:
        raise Http404
    return named


def _scope(fact: Fact) -> Scope:
    return Scope("person", fact.agent, fact.run)


def _wrong_with(text: str) -> str:
    if not text:
        return "Write what it should say. To be rid of it, delete it."
    if len(text) > LONGEST_TEXT:
        return f"This is too long for one statement. Write at most {LONGEST_TEXT:,} characters."
    if not is_storable(text):
        return "This has a character that cannot be stored. Write it without."
    return ""


def _changed_meanwhile(active: Fact, version: str) -> str:
    if not version or version == str(active.uuid):
        return ""
    return f"It was changed meanwhile and says “{active.text}” now. Save again to replace it."


def _offer(
    request: PageRequest, said: str, undo: str, fact: Fact, *, text: str = "", words: bool = False
) -> None:
    context = {"said": said, "undo": undo, "fact": fact, "text": text, "words": words}
    # Rendering has escaped the fact's words and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_fact.html", context, request))

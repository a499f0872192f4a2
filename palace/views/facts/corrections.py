"""Put a fact right: edit, outdated, about somebody else, wrong, forget; each can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.timezone import localtime

from language.english.grammatical_person import to_second_person, to_third_person
from language.errors import FactConflict, NoSuchFact, PalaceError
from language.facts import Thing
from language.storable import LABEL_LENGTH, is_storable, storable_label
from palace.curation.deletion import Forgotten, delete_fact, only_sources_of
from palace.curation.deletion import restore_fact as restore_with_words
from palace.curation.trash import Restored
from palace.knowledge.facts import (
    WRONG,
    Details,
    by_person,
    end_on,
    entity_for,
    find_entity,
    renamed,
    undo_edit,
    undo_end,
)
from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.mining import tasks
from palace.models import Entity, Fact, Palace, stored_name
from palace.views.facts import show_fact
from palace.views.shared.palace_tags import day
from palace.views.shared.query_params import (
    BadDay,
    end_of,
    find_by_uuid,
    read_day,
    start_of,
    way_back,
)
from settings_app.pages import PageRequest, signed_in_action, signed_in_page, wants_part
from settings_app.row_tags import counted

UNREAD = (
    "Fact updated. The sentence could not be read as one statement about the same subject, so it "
    "has no connections now."
)
INACTIVE = "This fact is inactive already, so nothing was changed. To change it, restore it first."
LONGEST_TEXT = 2000
# The forms that open below the buttons of a fact.
PANELS = ("edit", "outdated", "about", "forget")
# The names offered for whom a fact is about.
NAMES_OFFERED = 200


class Refused(PalaceError):
    """What was sent cannot be done; the message stands beside the field."""

    code = "refused"

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@signed_in_page
def correct_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """The buttons of a fact with the form `?do=`; for htmx alone, else on the fact's page."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    context = {"next": way_back(request), **care_of(palace, active, request.GET.get("do", ""))}
    if active is None or not wants_part(request):
        return show_fact(request, memory, **context)
    return render(request, "palace/_fact_care.html", {"fact": active, **context})


def care_of(palace: Palace, active: Fact | None, do: str, **sent: Any) -> dict[str, Any]:
    """What `_fact_care.html` shows of an open form."""
    if active is None or do not in PANELS:
        return {}
    shown: dict[str, Any] = {"do": do, "longest": LONGEST_TEXT}
    if do == "edit":
        shown |= {"text": to_second_person(active.text), "since": _day(active.valid_from)}
        shown |= {"until": _day(active.valid_to)}
    elif do == "outdated":
        shown["on"] = _day(timezone.now())
    elif do == "about":
        shown |= {"about": "", "names": names_in(palace, active)}
    else:
        shown["own_words"] = only_sources_of(palace, active.memory).count()
    return shown | sent


def names_in(palace: Palace, fact: Fact) -> list[str]:
    """Names of entities of the kind that the fact is about."""
    others = Entity.objects.filter(palace=palace, kind=fact.subject.kind).exclude(
        pk=fact.subject_id
    )
    return [entity.display_name for entity in others.order_by("slug")[:NAMES_OFFERED]]


@signed_in_action
def rewrite_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Edit the sentence and the days; `version` is the row that the form was made from."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    if active is None:
        return _inactive(request, memory)
    sent = {name: request.POST.get(name, "") for name in ("text", "since", "until")}
    text = " ".join(sent["text"].split())
    try:
        _refuse_text(text, active, request.POST.get("version", ""))
        values = _days(active, request.POST)
        details = Details(values=values, keeps_end=bool(sent["until"]))
        stored = to_third_person(text, like=active.text)
        new = rewrite(palace, memory, stored, by_person(active), details=details)
    except Refused as refused:
        wrong = {"error": str(refused), "error_in": refused.field}
        return _again(request, active, "edit", **{**sent, "text": text}, **wrong)
    except NoSuchFact:
        return _inactive(request, memory)
    except FactConflict as conflict:
        wrong = {"error": conflict.for_reader(), "error_in": "text"}
        return _again(request, active, "edit", **{**sent, "text": text}, **wrong)
    if new.fact.pk != new.old.pk:
        said = "Fact updated." if new.is_read else UNREAD
        _offer(request, said, "undo_fact", new.fact, before=new.old)
    return _back(request, memory)


@signed_in_action
def reassign_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Make it a fact about somebody else, in the same words with the other name."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    if active is None:
        return _inactive(request, memory)
    name = storable_label(" ".join(request.POST.get("about", "").split()))[:LABEL_LENGTH]
    try:
        subject = _subject(palace, active, name)
        text = renamed(active.text, active.subject, subject)
        details = Details(subject=subject, text=text)
        new = rewrite(palace, memory, text, by_person(active), details=details)
    except (Refused, FactConflict) as wrong:
        said = wrong.for_reader() if isinstance(wrong, FactConflict) else str(wrong)
        return _again(request, active, "about", about=name, error=said, error_in="about")
    except NoSuchFact:
        return _inactive(request, memory)
    said = f"This is about {subject.display_name} now."
    _offer(request, said, "undo_fact", new.fact, before=new.old)
    return _back(request, memory)


@signed_in_action
def end_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Outdated: it was so until the day `on`."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    if active is None:
        return _inactive(request, memory)
    try:
        ended = _last_day(active, request.POST.get("on", ""))
        until = active.valid_to
        row = end_on(palace, memory, ended, by_person(active))
    except Refused as refused:
        sent = {"on": request.POST.get("on", ""), "error": str(refused), "error_in": "on"}
        return _again(request, active, "outdated", **sent)
    except NoSuchFact:
        return _inactive(request, memory)
    said = f"It was true until {day(row.valid_to or ended)}."
    _offer(request, said, "undo_fact", row, until=until)
    return _back(request, memory)


@signed_in_action
def wrong_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """It was never so: drop it, and take up again what it had ended."""
    palace = Palace.objects.own(request.user)
    active = _active(palace, memory)
    if active is None:
        return _inactive(request, memory)
    try:
        delete(palace, memory, by_person(active), why=WRONG)
    except NoSuchFact:
        return _inactive(request, memory)
    _offer(request, "Marked as wrong. It is not used any more.", "restore_fact", active)
    return _back(request, memory)


@signed_in_action
def undo_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Undo an edit, which made `version` of `before`, or an end, of `version`."""
    palace = Palace.objects.own(request.user)
    version = _version(palace, memory, request.POST.get("version", ""))
    scope = by_person(version)
    try:
        if before := request.POST.get("before"):
            undo_edit(palace, _version(palace, memory, before), version, scope)
        else:
            undo_end(palace, version, _moment(request.POST.get("until", "")), scope)
    except NoSuchFact:
        return _inactive(request, memory)
    except FactConflict as conflict:
        return show_fact(request, memory, conflict=conflict.for_reader())
    messages.success(request, "Undone. It is as it was before.")
    return _back(request, memory)


@signed_in_action
def retire_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Forget a memory, and its source drawers if `words` is sent. Both can be restored."""
    palace = Palace.objects.own(request.user)
    doors = None if request.POST.get("words") else ()
    gone: Forgotten | None = None
    if active := _active(palace, memory):
        with suppress(NoSuchFact):
            gone = delete_fact(palace, memory, by_person(active), doors=doors)
    if active and gone:
        _offer(request, _deleted(gone), "restore_fact", active)
    else:
        messages.info(request, "There was nothing to forget: this fact is inactive already.")
    return _back(request, memory)


@signed_in_action
def restore_fact(request: PageRequest, memory: UUID) -> HttpResponse:
    """Restore a memory, in the given version or its latest."""
    palace = Palace.objects.own(request.user)
    version = _version(palace, memory, request.POST.get("version", ""))
    try:
        active, restored = restore_with_words(palace, version, by_person(version))
    except FactConflict as conflict:
        return show_fact(request, memory, conflict=conflict.for_reader())
    tasks.enqueue_mining(restored.unmined)
    _offer(request, _restored(restored), "retire_fact", active, words=restored.drawers > 0)
    return _back(request, memory)


def _again(request: PageRequest, active: Fact, do: str, **sent: Any) -> HttpResponse:
    """The fact's page with the refused form."""
    context = care_of(active.palace, active, do, **sent)
    return show_fact(request, active.memory, next=way_back(request), **context)


def _back(request: PageRequest, memory: UUID) -> HttpResponse:
    return redirect(way_back(request) or Fact(memory=memory).get_absolute_url())


def _inactive(request: PageRequest, memory: UUID) -> HttpResponse:
    messages.error(request, INACTIVE)
    return redirect("fact_detail", memory)


def _refuse_text(text: str, active: Fact, version: str) -> None:
    """
    Raises:
        Refused: the sentence cannot be used, or the form is older than the fact.
    """
    if not text:
        raise Refused("text", "Write what it should say. To remove it, forget it.")
    if len(text) > LONGEST_TEXT:
        sentence = f"This is too long for one statement. Write at most {LONGEST_TEXT:,} characters."
        raise Refused("text", sentence)
    if not is_storable(text):
        raise Refused("text", "This has a character that cannot be stored. Write it without.")
    if version and version != str(active.uuid):
        now = to_second_person(active.text)
        raise Refused(
            "text", f"It was changed meanwhile and says “{now}” now. Save again to replace it."
        )


def _days(active: Fact, sent: Mapping[str, str]) -> dict[str, datetime | None]:
    """The days that were changed, by column; unchanged ones keep their hour.

    Raises:
        Refused: one is no day, or the last comes before the first.
    """
    changed: dict[str, datetime | None] = {}
    for name, column, edge in (
        ("since", "valid_from", start_of),
        ("until", "valid_to", end_of),
    ):
        if name in sent and sent[name].strip() != _day(getattr(active, column)):
            chosen = _read(name, sent[name])
            changed[column] = edge(chosen) if chosen else None
    first = changed.get("valid_from", active.valid_from)
    last = changed.get("valid_to", active.valid_to)
    if changed and first and last and last < first:
        raise Refused("until", "It cannot end before it begins. Choose a later day.")
    return changed


def _last_day(active: Fact, text: str) -> datetime:
    """
    Raises:
        Refused: it is no day, in the future, or before the fact began.
    """
    chosen = _read("on", text)
    if chosen is None:
        raise Refused("on", "Choose the last day on which it was true.")
    if chosen > localtime().date():
        raise Refused("on", "That day is still to come. To plan an end, edit the fact.")
    ended = min(end_of(chosen), timezone.now())
    if active.valid_from and ended < active.valid_from:
        begun = day(active.valid_from)
        raise Refused("on", f"It has been true only since {begun}. Choose a later day.")
    return ended


def _read(name: str, text: str) -> date | None:
    try:
        return read_day(text)
    except BadDay as bad:
        raise Refused(name, str(bad)) from None


def _subject(palace: Palace, active: Fact, name: str) -> Entity:
    """The entity of that name, created if missing.

    Raises:
        Refused: there is no name, or it is about this entity already.
    """
    if not name:
        raise Refused("about", "Write who or what it is about.")
    kind = active.subject.kind
    named = stored_name(name)
    known = find_entity(palace, named, prefer=kind)
    if known is not None and known.pk == active.subject_id:
        raise Refused("about", f"It is about {known.display_name} already. Name another.")
    return known or entity_for(palace, Thing(named, kind))


def _deleted(gone: Forgotten) -> str:
    if not gone.trashed:
        return "Fact forgotten."
    moved = counted(gone.trashed, "message")
    return f"Fact forgotten, and {moved} it came from moved to the trash."


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
    active = rows.active().select_related("palace", "subject").first()
    if active is None and not rows.exists():
        raise Http404
    return active


def _version(palace: Palace, memory: UUID, uuid: str) -> Fact:
    rows = Fact.objects.within(palace).filter(memory=memory).order_by("-recorded_at", "-pk")
    named = find_by_uuid(rows, uuid) if uuid else rows.first()
    if named is None:
        raise Http404
    return named


def _day(moment: datetime | None) -> str:
    return localtime(moment).date().isoformat() if moment else ""


def _moment(text: str) -> datetime | None:
    """A moment that an undo form has from us; None if it has none."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else None
    return None


def _offer(request: PageRequest, said: str, undo: str, fact: Fact, **more: Any) -> None:
    context = {"said": said, "undo": undo, "fact": fact, "next": way_back(request), **more}
    # Rendering has escaped the fact's words and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_fact.html", context, request))

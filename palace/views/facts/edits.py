"""A person edits, deletes and restores facts. Each can be undone at once."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string

from language.storable import is_storable
from palace import tasks
from palace.curation.fact_deletion import Forgotten, delete_fact
from palace.curation.fact_deletion import restore_fact as restore_with_words
from palace.curation.trash import Restored
from palace.errors import FactConflict, NoSuchFact
from palace.knowledge.facts.fact_edits import rewrite
from palace.knowledge.facts.scope import Scope
from palace.models import Fact, Palace
from palace.templatetags.palace_tags import counted
from palace.views.facts.views import LONGEST_TEXT, show_fact
from settings_app.access import PageRequest, signed_in_action

UNREAD = (
    "Fact updated. The sentence could not be read as one statement about the same subject, so it "
    "is connected with nothing now."
)
INACTIVE = "This fact is inactive; restore it first."


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
    """Restore a memory: the version named, else its latest."""
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
    # Marked as safe by having been rendered, which escapes the fact's own words.
    messages.success(request, render_to_string("palace/_undo_fact.html", context, request))

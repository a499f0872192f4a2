"""The inbox: what dreams propose, to be accepted or rejected, and undone again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from language.errors import PalaceError
from palace.knowledge.dreaming import (
    Decided,
    accept,
    accept_all,
    reject,
    reject_all,
    undo,
    undo_all,
)
from palace.models import Palace, Proposal
from palace.views.inbox.filters import (
    DECIDED,
    KINDS,
    ROOMS,
    WAITING,
    ProposalFilter,
    waiting_proposals,
)
from palace.views.inbox.proposal_rows import ProposalRow, proposal_rows
from palace.views.inbox.rooms import rooms_to_review
from palace.views.shared.query_params import NumberedPage, UncountedPage
from settings_app.pages import PageRequest, render_page_or_part, signed_in_action, signed_in_page

PROPOSALS_SHOWN = 10
MOST_AT_ONCE = 200

ALL = {"accept": accept_all, "reject": reject_all, "undo": undo_all}
DONE = {"accept": "Accepted", "reject": "Rejected", "undo": "Undone"}
GONE = "This proposal is not here any more: its sources were deleted."


@dataclass(frozen=True, slots=True)
class Group:
    """Proposals of one kind, listed together.

    Attributes:
        count: The number of this kind, on all pages.
    """

    kind: Proposal.Kind
    rows: list[ProposalRow]
    count: int


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """The result of deciding on several.

    Attributes:
        said: What was done; empty if nothing was.
        undo: The proposals that an undo reverts.
        refused: (error message, number of proposals) of those that failed.
    """

    said: str
    undo: str
    refused: list[tuple[str, int]]


@signed_in_page
def inbox(request: PageRequest) -> HttpResponse:
    """Waiting proposals by kind (`?after=` is the cursor), decided or stale ones, or rooms."""
    palace = Palace.objects.own(request.user)
    asked = ProposalFilter.read(palace, request.GET)
    return _show(request, palace, asked)


@signed_in_action
def accept_proposal(request: PageRequest, uuid: UUID) -> HttpResponse:
    return _decide(request, uuid, accept)


@signed_in_action
def reject_proposal(request: PageRequest, uuid: UUID) -> HttpResponse:
    return _decide(request, uuid, reject)


@signed_in_action
def undo_proposal(request: PageRequest, uuid: UUID) -> HttpResponse:
    return _decide(request, uuid, undo)


@signed_in_action
def decide_proposals(request: PageRequest) -> HttpResponse:
    """Accept, reject or undo the chosen ones; each succeeds or fails by itself."""
    palace = Palace.objects.own(request.user)
    asked = ProposalFilter.read(palace, request.GET)
    decision = request.POST.get("decision", "")
    chosen = _chosen(palace, request.POST.getlist("chosen"))
    wrong = _wrong_with(decision, chosen)
    receipt = None if wrong else _receipt(decision, ALL[decision](palace, chosen))
    if request.htmx:
        status = 400 if wrong else 200
        return _show(request, palace, asked, status=status, receipt=receipt, wrong=wrong)
    if wrong:
        messages.error(request, wrong)
    elif receipt:
        said = render_to_string("palace/_inbox_receipt.html", {"receipt": receipt}, request)
        messages.success(request, said)
    return redirect(reverse("inbox") + asked.query)


def _show(
    request: PageRequest,
    palace: Palace,
    asked: ProposalFilter,
    *,
    status: int = 200,
    **outcome: Any,
) -> HttpResponse:
    after = request.GET.get("after", "")
    context = {"asked": asked, "goes_on": after, **_listed(request, palace, asked), **outcome}
    part = "rows" if after else "inbox"
    return render_page_or_part(request, "palace/inbox.html", part, context, status=status)


def _listed(request: PageRequest, palace: Palace, asked: ProposalFilter) -> dict[str, Any]:
    """The proposals of a tab: waiting ones by kind, others the newest first.

    Rooms have a tab of their own, and come after the last of the waiting proposals.
    """
    if asked.tab == ROOMS:
        return rooms_to_review(palace)
    if asked.tab != WAITING:
        rows = asked.of_kind(asked.proposals(palace)).select_related("dream")
        page = NumberedPage(rows, request.GET.get("page"), size=PROPOSALS_SHOWN)
        return {
            "page": page,
            "rows": proposal_rows(palace, page.rows),
            "can_undo": asked.tab == DECIDED,
        }
    after = request.GET.get("after", "")
    counts, found = waiting_proposals(palace, asked, after, PROPOSALS_SHOWN + 1)
    listed = UncountedPage(found, size=PROPOSALS_SHOWN)
    following = asked.with_query(after=str(listed.rows[-1].uuid)) if listed.has_next else ""
    is_end = not (asked.is_narrowed or listed.has_next)
    return {
        **(rooms_to_review(palace) if is_end else {}),
        "groups": list(_groups(proposal_rows(palace, listed.rows, are_waiting=True), counts)),
        "next": following,
        "total": sum(counts.values()),
        "kinds": list(_tabs(asked, counts)),
    }


def _groups(rows: Sequence[ProposalRow], counts: dict[str, int]) -> Iterator[Group]:
    for kind, group in groupby(rows, key=lambda row: row.proposal.kind):
        yield Group(Proposal.Kind(kind), list(group), counts.get(kind, 0))


def _tabs(asked: ProposalFilter, counts: dict[str, int]) -> Iterator[tuple[str, str, int, bool]]:
    """Label, query string and count of each kind, and whether it is the current one."""
    if len(counts) > 1 or asked.kind:
        yield "All", asked.with_query(kind=""), sum(counts.values()), not asked.kind
        for kind in KINDS:
            if kind in counts or kind == asked.kind:
                is_shown = kind == asked.kind
                question = asked.with_query(kind=kind)
                yield kind.label, question, counts.get(kind, 0), is_shown


def _decide(
    request: PageRequest, uuid: UUID, decide: Callable[[Palace, Proposal], Proposal]
) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    asked = ProposalFilter.read(palace, request.GET)
    proposal = get_object_or_404(Proposal.objects.within(palace), uuid=uuid)
    error = ""
    try:
        decide(palace, proposal)
    except PalaceError as wrong:
        error = str(wrong)
    if request.htmx:
        return _in_place(request, palace, asked, proposal, error)
    if error:
        messages.error(request, error)
    else:
        _say(request, palace, asked, proposal)
    return redirect(reverse("inbox") + asked.query)


def _in_place(
    request: PageRequest, palace: Palace, asked: ProposalFilter, proposal: Proposal, error: str
) -> HttpResponse:
    """The current row, and the counts of waiting proposals."""
    every = Proposal.objects.within(palace).select_related("dream")
    rows = proposal_rows(palace, list(every.filter(pk=proposal.pk)), error=error)
    context = {
        "row": rows[0] if rows else None,
        "gone": GONE,
        "asked": asked,
        "kinds": list(_tabs(asked, waiting_proposals(palace, asked, "", 0)[0])),
        "is_fresh": True,
    }
    status = 400 if error else 200
    return render(request, "palace/_proposal_outcome.html", context, status=status)


def _say(request: PageRequest, palace: Palace, asked: ProposalFilter, proposal: Proposal) -> None:
    proposal.refresh_from_db()
    row = proposal_rows(palace, [proposal])[0]
    context = {"row": row, "asked": asked}
    # Rendering has escaped the proposal's words and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_proposal.html", context, request))


def _chosen(palace: Palace, sent: Sequence[str]) -> list[UUID]:
    """The chosen proposals of this palace; a value may have several ids, separated by spaces.

    Raises:
        Http404: the value has no id of such a proposal.
    """
    texts = [text for value in sent for text in value.split()]
    try:
        uuids = [UUID(text) for text in texts]
    except ValueError:
        raise Http404 from None
    rows = Proposal.objects.within(palace).filter(uuid__in=uuids)
    found = list(rows.values_list("uuid", flat=True))
    if uuids and not found:
        raise Http404
    return found


def _wrong_with(decision: str, chosen: Collection[UUID]) -> str:
    if decision not in ALL:
        return "Choose what to do: accept, reject or undo."
    if not chosen:
        return "Nothing was selected. Tick the boxes of the proposals first."
    if len(chosen) > MOST_AT_ONCE:
        return f"At most {MOST_AT_ONCE} can be decided on at once. Select fewer."
    return ""


def _receipt(decision: str, decided: Decided) -> DecisionReport:
    count = len(decided.done)
    said = f"{DONE[decision]}: {count:,} proposal{'s' if count != 1 else ''}." if count else ""
    takes_back = "" if decision == "undo" else " ".join(str(one.uuid) for one in decided.done)
    refused = [(text, decided.refused.count(text)) for text in dict.fromkeys(decided.refused)]
    return DecisionReport(said, takes_back, refused)

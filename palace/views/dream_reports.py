"""What a dream looked at, proposed and cost, in figures for the list of activities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.urls import reverse

from palace.models import Activity, Proposal
from settings_app.templatetags.figures import dollars

LOOKED_AT = {
    "facts": ("fact looked at", "facts looked at"),
    "feedback": ("correction looked at", "corrections looked at"),
    "messages": ("message looked at", "messages looked at"),
}


def dream_figures(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and number of each that there is."""
    looked, proposed = detail.get("looked_at", {}), detail.get("proposed", {})
    for name, words in LOOKED_AT.items():
        if count := looked.get(name):
            yield words[count != 1], f"{count:,}"
    for kind in Proposal.Kind:
        if count := proposed.get(kind.value):
            yield f"proposed: {kind.label}", f"{count:,}"
    if applied := detail.get("applied"):
        yield "applied by themselves" if applied != 1 else "applied by itself", f"{applied:,}"
    yield from _costs(detail)


def dream_place(activity: Activity) -> tuple[str, str] | None:
    """The link to what it proposed: its name, and its address."""
    if not activity.detail.get("proposed"):
        return None
    return "See what it proposed", f"{reverse('inbox')}?dream={activity.uuid}"


def _costs(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    calls = detail.get("calls", 0)
    if not detail.get("model"):
        yield "by the local rules", "free"
        return
    yield "call" if calls == 1 else "calls", f"{calls:,} of {detail['model']}"
    yield "tokens", f"{detail['tokens_in'] + detail['tokens_out']:,}"
    cost = detail.get("cost_usd")
    yield "cost", "price not known" if cost is None else dollars(Decimal(cost))

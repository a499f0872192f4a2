"""The frame around every page: the rail with its links, and where one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse

from palace.models import Proposal

register = template.Library()

# URL name, label, icon and key (after "g") of each link.
MAIN = (
    ("chat", "Chat", "agent", "c"),
    ("memory", "Palace", "loci", "p"),
    ("facts", "Facts", "fact", "f"),
    ("entities", "People", "person", "e"),
    ("inbox", "Review", "inbox", "r"),
)
ACCOUNT = (
    ("imports", "Import", "import", "i"),
    ("activities", "Activity", "clock", "a"),
    ("trash", "Trash", "trash", "t"),
    ("settings", "Settings", "settings", "s"),
)
DEVELOPERS = (
    ("api_keys", "Keys"),
    ("webhooks", "Webhooks"),
    ("working_memory", "Working memory"),
    ("recall_cases", "Cases"),
    ("api:reference", "API"),
)
# The tabs of the settings, each with its pages: URL name and label. It opens the first of them.
SETTINGS = (
    ("General", (("settings", "Memory"), ("account", "Account"))),
    (
        "Model & privacy",
        (
            ("model_settings", "Model"),
            ("model_uses", "Permissions"),
            ("sent", "Sent"),
            ("dream_settings", "Dreams"),
            ("costs", "Costs"),
        ),
    ),
    ("Data", (("data_settings", "Your data"),)),
    ("Developers", DEVELOPERS),
)
# No badge says more than this.
MOST_COUNTED = 99


@dataclass(frozen=True, slots=True)
class Link:
    """
    Attributes:
        current: "page" on its own page, "true" on the pages below it, else empty.
        count: What waits there, such as "3" or "99+"; empty if nothing does.
    """

    address: str
    label: str
    icon: str
    key: str
    current: str = ""
    count: str = ""


@register.inclusion_tag("_rail.html", takes_context=True)
def rail(context: template.RequestContext) -> dict[str, Any]:
    """The links of the rail and of the account menu."""
    request = context["request"]
    here = _nearest(request.path)
    waiting = _waiting(request.user.pk)
    return {
        "main": [_link(each, request.path, here, waiting) for each in MAIN],
        "account": [_link(each, request.path, here) for each in ACCOUNT],
        "user": request.user,
        "csrf_token": context["csrf_token"],
    }


@register.inclusion_tag("settings_app/_tabs.html", takes_context=True)
def settings_tabs(context: template.RequestContext) -> dict[str, Any]:
    """The tabs of the settings and, below the current one, those of its pages."""
    path = context["request"].path
    tabs, below, title = [], [], ""
    for label, pages in SETTINGS:
        links = [_tab(name, each, path) for name, each in pages]
        is_here = any(link.current for link in links)
        tabs.append(Link(links[0].address, label, "", "", "true" if is_here else ""))
        if is_here and len(links) > 1:
            below, title = links, label
    return {"tabs": tabs, "below": below, "title": title}


def _tab(name: str, label: str, path: str) -> Link:
    return Link(reverse(name), label, "", "", "page" if path == reverse(name) else "")


def _nearest(path: str) -> str:
    """The name of the link with the longest address that `path` is below."""
    if any(path == reverse(name) for name, _ in DEVELOPERS):
        return "settings"
    above = [name for name, *_ in (*MAIN, *ACCOUNT) if path.startswith(reverse(name))]
    return max(above, key=lambda name: len(reverse(name)), default="")


def _link(entry: tuple[str, str, str, str], path: str, here: str, waiting: int = 0) -> Link:
    name, label, icon, key = entry
    address = reverse(name)
    current = ("page" if path == address else "true") if name == here else ""
    count = _in_figures(waiting) if name == "inbox" else ""
    return Link(address, label, icon, key, current, count)


def _waiting(owner_id: int) -> int:
    """How many proposals of the account's own palace wait, counted no further than needed."""
    waiting = Proposal.objects.filter(palace__owner=owner_id, palace__subject="").waiting()
    return waiting.order_by()[: MOST_COUNTED + 1].count()


def _in_figures(count: int) -> str:
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count or "")

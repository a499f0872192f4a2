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
# URL name and label of each tab of the settings. The last one has pages of its own.
SETTINGS = (
    ("settings", "Memory & model"),
    ("dream_settings", "Dreams"),
    ("costs", "Costs"),
    ("data_settings", "Your data"),
    ("account", "Account"),
    ("api_keys", "Developers"),
)
DEVELOPERS = (
    ("api_keys", "Keys"),
    ("webhooks", "Webhooks"),
    ("working_memory", "Working memory"),
    ("recall_cases", "Cases"),
    ("api:reference", "API"),
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
    """The tabs of the settings and, on a page for developers, those below the last one."""
    path = context["request"].path
    developers = [_tab(name, label, path) for name, label in DEVELOPERS]
    is_developers = any(tab.current for tab in developers)
    tabs = [_tab(name, label, path) for name, label in SETTINGS[:-1]]
    name, label = SETTINGS[-1]
    tabs.append(Link(reverse(name), label, "", "", "true" if is_developers else ""))
    return {"tabs": tabs, "developers": developers if is_developers else ()}


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

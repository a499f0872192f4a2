"""The frame around every page: the rail with its links, and where one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Subquery
from django.http import HttpRequest

from palace.models import Drawer, ImportJob, Palace, Proposal
from palace.transfer import import_jobs
from settings_app.fast_reverse import address_of
from settings_app.row_tags import counted

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
    ("connected_apps", "Apps"),
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
# Of many messages that wait to be read it matters only that they are many.
MOST_READ = 1000


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
    seen = _glance(request)
    waiting = len(seen.waiting)
    job = ImportJob.objects.filter(palace=seen.palace, pk=seen.job).first() if seen.job else None
    return {
        "shown": ImportNow(job) if job and job.get_absolute_url() != request.path else None,
        "main": [_link(each, request.path, here, waiting) for each in MAIN],
        "account": [_link(each, request.path, here) for each in ACCOUNT],
        "user": request.user,
        "csrf_token": context["csrf_token"],
    }


@register.inclusion_tag("_rail.html#review-count", takes_context=True)
def new_review_count(context: template.RequestContext) -> dict[str, Any]:
    """Beside a part of the page after a decision: what waits still, for the rail."""
    return {"count": _in_figures(len(_glance(context["request"]).waiting)), "swap": True}


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
    return Link(address_of(name), label, "", "", "page" if path == address_of(name) else "")


def _nearest(path: str) -> str:
    """The name of the link with the longest address that `path` is below."""
    if any(path == address_of(name) for name, _ in DEVELOPERS):
        return "settings"
    above = [name for name, *_ in (*MAIN, *ACCOUNT) if path.startswith(address_of(name))]
    return max(above, key=lambda name: len(address_of(name)), default="")


def _link(entry: tuple[str, str, str, str], path: str, here: str, waiting: int = 0) -> Link:
    name, label, icon, key = entry
    address = address_of(name)
    current = ("page" if path == address else "true") if name == here else ""
    count = _in_figures(waiting) if name == "inbox" else ""
    return Link(address, label, icon, key, current, count)


@dataclass(frozen=True, slots=True)
class Glance:
    """What every page says of the account's own palace.

    Attributes:
        palace: Its key; 0 before it is created.
        waiting: Keys of proposals that wait, no more than the badge counts.
        has_sample: Whether the sample palace is in it.
        job: Key of the import that runs.
    """

    palace: int = 0
    waiting: tuple[int, ...] = ()
    has_sample: bool = False
    job: int | None = None


def _glance(request: HttpRequest) -> Glance:
    """In one query a request."""
    found: Glance | None = getattr(request, "_glance", None)
    if found is None:
        row = _glances(request.user.pk).first()
        found = Glance(*row) if row else Glance()
        request._glance = found  # type: ignore[attr-defined]
    return found


def _glances(owner_id: int | None) -> Any:
    own = OuterRef("pk")
    waiting = Proposal.objects.filter(palace=own).waiting().order_by().values("pk")
    sample = Drawer.objects.filter(palace=own, source=ImportJob.SAMPLE)
    running = ImportJob.objects.filter(palace=own, status=ImportJob.Status.RUNNING)
    return Palace.objects.filter(owner=owner_id, subject="").values_list(
        "pk",
        ArraySubquery(waiting[: MOST_COUNTED + 1]),
        Exists(sample),
        Subquery(running.order_by("-pk").values("pk")[:1]),
    )


class ImportNow:
    """An import as every page shows it while it runs, and once more when it has ended."""

    def __init__(self, job: ImportJob) -> None:
        self.job = job
        self.progress = import_jobs.progress(job)
        self.is_running = job.status == ImportJob.Status.RUNNING

    @property
    def said(self) -> str:
        """For screen readers: changes with the state and each quarter, not with each message."""
        name = self.job.file_name
        match self.job.status:
            case ImportJob.Status.RUNNING:
                quarters = ("", "a quarter", "half", "three quarters")
                done = quarters[min(self.progress.percent // 25, 3)]
                return f"{name}: {done} is imported." if done else f"{name} is being imported."
            case ImportJob.Status.DONE:
                stored = counted(self.job.messages_stored, "new message")
                return f"{name} is imported: {stored}."
            case ImportJob.Status.FAILED:
                return f"The import of {name} has stopped by an error."
        return f"The import of {name} is paused."


@register.inclusion_tag("palace/_sample_banner.html", takes_context=True)
def sample_banner(context: template.RequestContext) -> dict[str, Any]:
    """Says on every page that the sample palace is in it, with questions to try and a way out."""
    seen = _glance(context["request"])
    return {
        "has_sample": seen.has_sample,
        "questions": import_jobs.SAMPLE_QUESTIONS,
        "csrf_token": context.get("csrf_token"),
    }


@register.simple_tag(takes_context=True)
def waiting_proposals(context: template.RequestContext) -> int:
    """How many wait in the account's own palace; counted only where the rail says 99+."""
    seen = _glance(context["request"])
    if len(seen.waiting) <= MOST_COUNTED:
        return len(seen.waiting)
    return Proposal.objects.filter(palace=seen.palace).waiting().count()


@register.simple_tag(takes_context=True)
def being_read(context: template.RequestContext) -> str:
    """The messages of the account's own palace to be mined or read for facts; empty if none."""
    palace = _glance(context["request"]).palace
    unread = Drawer.objects.filter(palace=palace, trashed_at=None, facts_read_at=None)
    waiting = unread.order_by()[: MOST_READ + 1].count()
    if waiting > MOST_READ:
        return f"More than {counted(MOST_READ, 'message')} are"
    return f"{counted(waiting, 'message')} {'is' if waiting == 1 else 'are'}" if waiting else ""


@register.simple_tag(takes_context=True)
def is_palace_empty(context: template.RequestContext) -> bool:
    palace = _glance(context["request"]).palace
    return not Drawer.objects.filter(palace=palace, trashed_at=None).exists()


@register.filter
def time_left(seconds: float) -> str:
    """`less than a minute`, `about 3 minutes`, `about 2 hours`: an estimate, so in round words."""
    minutes = round(seconds / 60)
    if seconds < 55:
        return "less than a minute"
    if minutes < 90:
        return f"about {counted(max(minutes, 1), 'minute')}"
    return f"about {counted(round(seconds / 3600), 'hour')}"


def _in_figures(count: int) -> str:
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count or "")

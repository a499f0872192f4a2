"""Find all pages that a person can open, and measure the handler's time for each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count
from django.templatetags.static import static
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver, reverse

from bench.metrics import percentile
from bench.runs import cpu_ms
from chat.models import Agent, Conversation
from palace.models import (
    Closet,
    Drawer,
    Entity,
    Fact,
    ImportJob,
    Palace,
    Proposal,
    RecollectionTrace,
    Room,
    Wing,
)
from settings_app.sessions import SessionStore

# An allowed host name.
HOST = "localhost"
SEARCH = "memory, searched"
# A page that reads only what all pages read: its list of keys is static.
EMPTY = "keyboard"
PLAN = "memory"
# What an address of one thing has: its key.
KEYS = ({"uuid"}, {"memory"})
A_YEAR = "max-age=31536000"


@dataclass(frozen=True, slots=True)
class Budget:
    """A figure of the run, and the most that it may be."""

    name: str
    figure: float
    most: float

    def report(self) -> dict[str, float | bool]:
        return {"figure": self.figure, "most": self.most, "met": self.figure <= self.most}


@dataclass(slots=True)
class Page:
    """
    Attributes:
        times_ms: By the clock.
        cpu_ms: Processor time of Python and Postgres; by the clock if Postgres is elsewhere.
        queries: SQL queries of the last request, including session and account.
        size: Bytes of the last response.
    """

    name: str
    address: str
    times_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    queries: int = 0
    size: int = 0

    def report(self, empty: Page) -> dict[str, float]:
        """
        Args:
            empty: The page whose median the others are compared with.
        """
        median = percentile(self.cpu_ms, 0.5)
        return {
            "cpu_p50_ms": round(median, 1),
            "times_empty": round(median / percentile(empty.cpu_ms, 0.5), 2),
            "p50_ms": round(percentile(self.times_ms, 0.5), 1),
            "p95_ms": round(percentile(self.times_ms, 0.95), 1),
            "queries": self.queries,
            "bytes": self.size,
        }


class Browser:
    """A signed-in user whose requests go through the whole handler without the network."""

    def __init__(self, session_key: str) -> None:
        self._client = Client(SERVER_NAME=HOST)
        self._client.cookies[settings.SESSION_COOKIE_NAME] = session_key

    def shows(self, address: str) -> bool:
        """Whether the URL is a page for people."""
        response = self._client.get(address)
        return response.status_code == 200 and response["Content-Type"].startswith("text/html")

    def measure(self, page: Page, address: str) -> None:
        # As on the server, where each request opens a connection.
        connection.close()
        began, started = time.process_time(), time.perf_counter()
        response = self._client.get(address)
        took = (time.perf_counter() - started) * 1000
        page.times_ms.append(took)
        # The server's process for this connection began with it.
        spent = cpu_ms()
        page.cpu_ms.append(took if spent is None else spent - began * 1000)
        page.size = len(response.content)

    def count(self, page: Page) -> None:
        with CaptureQueriesContext(connection) as queries:
            self._client.get(page.address)
        page.queries = len(queries)


@contextmanager
def session_of(user: User) -> Iterator[str]:
    """The key of a session within the block.

    Unlike a sign-in, it leaves the user's one-time links valid.
    """
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    try:
        yield str(session.session_key)
    finally:
        session.delete()


def pages_of(browser: Browser, palace: Palace) -> list[Page]:
    """One for each address that shows this person a page; the largest of its kind where it can.

    Found by requesting each URL, so that new pages are measured too.
    """
    keys = list(_largest(palace))
    pages = []
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))  # Most requests are 404s, which are logged.
    try:
        for pattern in _patterns():
            addresses = filter(browser.shows, _addresses(pattern, keys))
            pages += [Page(str(pattern.name), address) for address in islice(addresses, 1)]
    finally:
        logging.disable(before)
    return pages


def budgets_of(pages: Sequence[Page], *, first_search_ms: float) -> list[Budget]:
    """The measured costs of pages, each with its limit."""
    named = {page.name: page.report(page_named(pages, EMPTY)) for page in pages}
    assets = own_assets()
    slowest = max(named, key=lambda name: named[name]["times_empty"])
    return [
        Budget(f"slowest page ({slowest}), x empty", named[slowest]["times_empty"], 2.5),
        Budget("first search of the process, ms", round(first_search_ms, 1), 1000),
        Budget("own assets, compressed, bytes", assets.size, 120_000),
        Budget("own assets not kept for a year", assets.not_kept, 0),
        Budget("plan of the palace, bytes", named[PLAN]["bytes"], 60_000),
    ]


def page_named(pages: Sequence[Page], name: str) -> Page:
    return next(page for page in pages if page.name == name)


@dataclass(frozen=True, slots=True)
class Assets:
    """All styles, scripts and icons of ours, as the server sends them to a browser.

    Attributes:
        size: Compressed bytes.
        not_kept: How many a browser asks for again before a year has passed.
    """

    size: int
    not_kept: int


def own_assets() -> Assets:
    client = Client(SERVER_NAME=HOST, headers={"Accept-Encoding": "gzip"})
    folders = (Path(folder) for folder in settings.STATICFILES_DIRS)
    names = [
        file.relative_to(folder).as_posix()
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    sent = [client.get(static(name)) for name in names]
    return Assets(
        size=sum(len(response.content) for response in sent),
        not_kept=sum(A_YEAR not in response["Cache-Control"] for response in sent),
    )


def search_address(question: str) -> str:
    return f"{reverse('memory')}?{urlencode({'q': question})}"


def _patterns() -> Iterator[URLPattern]:
    waiting = list(get_resolver().url_patterns)
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, URLPattern):
            yield one
        elif not one.namespace:  # The admin site's pages are not a person's own.
            waiting += one.url_patterns


def _addresses(pattern: URLPattern, keys: Sequence[UUID]) -> Iterator[str]:
    """Those it may have, one for each key; none where it asks for more than a key."""
    parameters = set(pattern.pattern.regex.groupindex)
    if not parameters:
        yield reverse(str(pattern.name))
    elif parameters in KEYS:
        yield from (reverse(str(pattern.name), args=[key]) for key in keys)


def _largest(palace: Palace) -> Iterator[UUID]:
    """A key of each kind of thing that has a page, the largest of its kind where it can."""
    drawers = Drawer.objects.within(palace)
    kinds = [
        *(_by_size(Wing, palace, "rooms__drawers"), _by_size(Room, palace, "drawers")),
        *(_by_size(Closet, palace, "drawers"), _by_size(Conversation, palace, "messages")),
        drawers.kept().order_by("-mentions", "pk"),
        drawers.trashed(),
        *(model.objects.filter(palace=palace) for model in (Agent, ImportJob, RecollectionTrace)),
        *(model.objects.filter(palace=palace) for model in (Entity, Proposal)),
    ]
    for rows in kinds:
        yield from rows.values_list("uuid", flat=True)[:1]
    yield from Fact.objects.within(palace).active().values_list("memory", flat=True)[:1]


def _by_size(model: Any, palace: Palace, parts: str) -> Any:
    return model.objects.within(palace).annotate(size=Count(parts)).order_by("-size", "pk")

"""`manage.py bench_pages`: the time of each page in a large palace, among others' data.

It finds all pages that a person can open, and measures the handler's time for each.
"""

from __future__ import annotations

import json
import logging
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import connection
from django.db.models import Count
from django.templatetags.static import static
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver, reverse
from tqdm import tqdm

from bench.metrics import percentile
from bench.runs import UnrestrictedCommand, cpu_ms, own_schema
from bench.synthetic_palace import conversations, furnish, questions
from chat.models import Agent, Conversation
from language.analyzer import load_detection
from llm import embedding
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
        """Request the address; within `pooled`."""
        connection.ensure_connection()
        before, started = cpu_ms(), time.perf_counter()
        # As on the web server, where each request takes a connection and gives it back.
        connection.close()
        response = self._client.get(address)
        took = (time.perf_counter() - started) * 1000
        page.times_ms.append(took)
        after = cpu_ms()
        page.cpu_ms.append(took if before is None or after is None else after - before)
        page.size = len(response.content)

    def count(self, page: Page) -> None:
        with CaptureQueriesContext(connection) as queries:
            self._client.get(page.address)
        page.queries = len(queries)


@contextmanager
def pooled() -> Iterator[None]:
    """Within the block requests share a connection, as those of the web server do.

    It is one, where the server has several: so the server's process for it, whose time is measured,
    is the same before and after a request.
    """
    options = connection.settings_dict["OPTIONS"]
    connection.close()
    options["pool"] = {"min_size": 1, "max_size": 1, "timeout": settings.DB_POOL_WAIT_S}
    try:
        yield
    finally:
        connection.close()
        cast("Any", connection).close_pool()  # Missing in its stubs.
        del options["pool"]


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


# Fewer would leave the trash empty.
LEAST = 100


class Command(UnrestrictedCommand):
    help = (
        "Measure each page on the server, in a palace of made-up talk beside another as large. "
        "A table on standard error, one JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--drawers", type=int, default=20_000, help=f"In each palace; at least {LEAST}."
        )
        parser.add_argument("--repeats", type=int, default=30, help="How often each page is asked.")
        parser.add_argument("--keep", action="store_true", help="Keep the palaces for next time.")

    def handle(self, *, drawers: int, repeats: int, keep: bool, **options: Any) -> None:
        if drawers < LEAST or repeats < 1:
            raise CommandError(f"Measure at least {LEAST} drawers, and each page at least once.")
        with own_schema("bench_pages", keep=keep, data=f"{drawers} drawers"):
            _furnished("neighbour", drawers)
            resident = _furnished("resident", drawers)
            asked = questions(list(conversations(drawers)))
            # As a web process does when it starts; its first search reads the index of the palace.
            embedding.load()
            load_detection()
            first = Page(SEARCH, search_address(next(asked)))
            with session_of(resident) as key, pooled():
                browser = Browser(key)
                browser.measure(first, first.address)
                pages = _measure(browser, Palace.objects.own(resident), asked, repeats)
        empty = page_named(pages, EMPTY)
        budgets = budgets_of(pages, first_search_ms=first.times_ms[0])
        report = {
            "drawers": drawers,
            "repeats": repeats,
            "budgets": {budget.name: budget.report() for budget in budgets},
            "pages": {page.name: page.report(empty) for page in pages},
        }
        self._show(report)
        self.stdout.write(json.dumps(report))

    def _show(self, report: dict[str, Any]) -> None:
        heads = f"{'CPU p50':>9}{'x empty':>9}{'p50 ms':>8}{'p95 ms':>8}{'queries':>9}{'kB':>7}"
        lines = [f"{'page':<28}{heads}"]
        slowest_first = sorted(report["pages"].items(), key=lambda each: -each[1]["cpu_p50_ms"])
        for name, said in slowest_first:
            lines.append(
                f"{name:<28}{said['cpu_p50_ms']:>9}{said['times_empty']:>9}"
                f"{said['p50_ms']:>8}{said['p95_ms']:>8}{said['queries']:>9}"
                f"{said['bytes'] / 1000:>7.1f}"
            )
        lines.append(f"{'budget':<48}{'figure':>12}{'at most':>12}")
        for name, said in report["budgets"].items():
            over = "" if said["met"] else "  OVER"
            lines.append(f"{name:<48}{said['figure']:>12,}{said['most']:>12,}{over}")
        self.stderr.write("\n".join(lines), style_func=str)


def _furnished(name: str, drawers: int) -> User:
    """The user of that name; one who was kept has a furnished palace already."""
    user, _ = User.objects.get_or_create(username=name)
    palace = Palace.objects.own(user)
    if not Drawer.objects.within(palace).exists():
        furnish(palace, drawers)
    return user


def _measure(browser: Browser, palace: Palace, asked: Iterator[str], repeats: int) -> list[Page]:
    """In rounds, so that a machine that slows down slows all pages alike."""
    search = Page(SEARCH, search_address(next(asked)))
    pages = [search, *pages_of(browser, palace)]
    for page in pages:
        browser.count(page)  # Warms up, too: what a process reads once is not the question.
    for _ in tqdm(range(repeats), unit="round", disable=None):
        for page in pages:
            fresh = search_address(next(asked)) if page is search else page.address
            browser.measure(page, fresh)
    return pages

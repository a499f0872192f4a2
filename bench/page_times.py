"""Find all pages that a person can open, and measure the handler's time for each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver, reverse

from bench.metrics import percentile
from chat.models import Agent, Conversation
from palace.models import Closet, Drawer, ImportJob, Palace, RecollectionTrace, Room, Wing

# An allowed host name.
HOST = "localhost"
SEARCH = "memory, searched"


@dataclass(slots=True)
class Page:
    """
    Attributes:
        queries: SQL queries of the last request, including session and account.
        size: Bytes of the last response.
    """

    name: str
    address: str
    times_ms: list[float] = field(default_factory=list)
    queries: int = 0
    size: int = 0

    def report(self) -> dict[str, float]:
        return {
            "p50_ms": round(percentile(self.times_ms, 0.5), 1),
            "p95_ms": round(percentile(self.times_ms, 0.95), 1),
            "queries": self.queries,
            "bytes": self.size,
        }


class Browser:
    """A signed-in user whose requests go through the whole handler without the network."""

    def __init__(self, user: User) -> None:
        self._client = Client(SERVER_NAME=HOST)
        self._client.force_login(user)

    def shows(self, address: str) -> bool:
        """Whether the URL is a page for people."""
        response = self._client.get(address)
        return response.status_code == 200 and response["Content-Type"].startswith("text/html")

    def measure(self, page: Page, address: str) -> None:
        # As on the server, where each request opens a connection.
        connection.close()
        started = time.perf_counter()
        response = self._client.get(address)
        page.times_ms.append((time.perf_counter() - started) * 1000)
        page.size = len(response.content)

    def count(self, page: Page) -> None:
        with CaptureQueriesContext(connection) as queries:
            self._client.get(page.address)
        page.queries = len(queries)


def pages_of(browser: Browser, palace: Palace) -> list[Page]:
    """One for each address that shows this person a page; the largest of its kind where it can.

    Found by requesting each URL, so that new pages are measured too.
    """
    keys = list(_largest(palace))
    pages = []
    logging.disable(logging.WARNING)  # Most requests are 404s, which are logged.
    try:
        for pattern in _patterns():
            addresses = filter(browser.shows, _addresses(pattern, keys))
            pages += [Page(str(pattern.name), address) for address in islice(addresses, 1)]
    finally:
        logging.disable(logging.NOTSET)
    return pages


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
    elif parameters == {"uuid"}:
        yield from (reverse(str(pattern.name), args=[key]) for key in keys)


def _largest(palace: Palace) -> Iterator[UUID]:
    """A key of each kind of thing that has a page."""
    wings = Wing.objects.within(palace).annotate(size=Count("rooms__drawers"))
    rooms = Room.objects.within(palace).annotate(size=Count("drawers"))
    closets = Closet.objects.within(palace).annotate(size=Count("drawers"))
    conversations = Conversation.objects.within(palace).annotate(size=Count("messages"))
    drawers = Drawer.objects.within(palace)
    for rows in (wings, rooms, closets, conversations):
        yield rows.order_by("-size", "pk").values_list("uuid", flat=True)[0]
    yield drawers.kept().order_by("-mentions", "pk").values_list("uuid", flat=True)[0]
    yield drawers.trashed().values_list("uuid", flat=True)[0]
    for model in (Agent, ImportJob, RecollectionTrace):
        yield model.objects.filter(palace=palace).values_list("uuid", flat=True)[0]

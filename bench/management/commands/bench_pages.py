"""`manage.py bench_pages`: the time of each page in a large palace, among others' data."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError
from tqdm import tqdm

from bench.page_times import (
    EMPTY,
    SEARCH,
    Browser,
    Page,
    budgets_of,
    page_named,
    pages_of,
    search_address,
    session_of,
)
from bench.runs import UnrestrictedCommand, own_schema
from bench.synthetic_palace import conversations, furnish, questions
from language.detection import load_detection
from llm import embedding
from palace.models import Drawer, Palace

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
            with session_of(resident) as key:
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

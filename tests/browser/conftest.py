"""Headless Chromium, the server and the worker of the product, and conversations to talk about."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from playwright.sync_api import expect, sync_playwright

from tests.asgi_server import AsgiServer
from tests.browser.conversations import CONVERSATIONS
from tests.browser.worker import Worker
from tests.furnished_palaces import furnish

# First those without windows, menus and tabs: they take a third to a half of the processor time.
BROWSERS = (
    *("chromium-headless-shell", "chrome-headless-shell"),
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process less, and no process for each site: a tenth less of processor time.
    "--in-process-gpu",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process",
]


# What a reply may take to be written to its end when its test is over, and a connection to close.
REPLY_S = 60
CLOSING_S = 30


@pytest.fixture(scope="package")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.fail(
                "These tests drive a browser. Install Chromium or Chrome so that it is on PATH, or"
                " run .venv/bin/playwright install chromium."
            )
        # Playwright keeps an event loop in this thread; the tests' own queries are not within it.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def _server(django_db_setup):
    with AsgiServer() as server:
        yield server


@pytest.fixture
def loci_server(_server, transactional_db):
    """The product's own server, on the test's database; what it began has ended after the test.

    One server serves all tests, so that browsers keep styles and scripts from page to page.
    """
    before = database_sessions()
    _server.misplaced_queries.clear()
    yield _server
    _server.hang_up()
    for thread in threading.enumerate():
        if thread.name.startswith("reply "):
            thread.join(REPLY_S)
    deadline = time.monotonic() + CLOSING_S
    while (left := database_sessions() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, "Connections to the database were left open."
    assert _server.misplaced_queries == []


def database_sessions():
    """The process ids of everybody else's connections to the test's database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in cursor}


@pytest.fixture(scope="package")
def _worker(django_db_setup):
    with Worker() as worker:
        yield worker


@pytest.fixture
def loci_worker(_worker, transactional_db, settings):
    """The product's own worker; `loci_worker.finish()` waits until it has done what is queued."""
    settings.MINE_AFTER_S = 0
    _worker.begin()
    yield _worker
    _worker.end()


@pytest.fixture
def furnished(transactional_db, palace, tmp_path):
    """Alice's palace after an import."""
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join(json.dumps(conversation) for conversation in CONVERSATIONS))

    def build(_palace):
        silent = io.StringIO()
        call_command("import_chats", file, "--user", "alice", "--yes", stdout=silent, stderr=silent)

    return furnish(palace, "imported", build)


# A machine that others use too may take its time.
expect.set_options(timeout=30_000)


class Windows:
    """Browser contexts on one server, and what they had to complain of."""

    def __init__(self, browser, url):
        self._browser, self._url = browser, url
        self._open, self.faults = [], []

    def close(self):
        for context in self._open:
            context.close()

    def open(self, **options):
        # Tests do not wait for a page to fade into the next.
        options.setdefault("reduced_motion", "reduce")
        context = self._browser.new_context(base_url=self._url, **options)
        self._open.append(context)
        context.set_default_timeout(60_000)
        context.on("request", self._note_foreign)
        context.on("response", self._note_failure)
        context.on("console", self._note_complaint)
        context.on("weberror", lambda fault: self.faults.append(str(fault.error)))
        return context

    def _note_foreign(self, request):
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.faults.append(f"asked for {request.url}")

    def _note_failure(self, response):
        if response.status >= 500:
            self.faults.append(f"{response.status} for {response.url}")

    def _note_complaint(self, message):
        # Browser and htmx also complain of each 4xx, and of each request that does not arrive,
        # which may be just what a test is about.
        of_requests = (
            "Failed to load resource",
            "Response Status Error Code",
            "htmx:afterRequest",
            "htmx:sendError",
            "htmx:sendAbort",
        )
        if message.type == "error" and not message.text.startswith(of_requests):
            self.faults.append(message.text)


@pytest.fixture
def open_context(browser, loci_server):
    """Opens browser windows. They may ask this server only, and must have nothing to complain of:
    no breach of the policy, no error in a script, nothing that the server failed at."""
    windows = Windows(browser, loci_server.url)
    yield windows.open
    windows.close()
    assert windows.faults == []


@pytest.fixture
def signed_in(open_context, alice, loci_server):
    """Opens a page for Alice, who is signed in already."""

    def sign_in(at="/memory/", **options):
        context = open_context(**options)
        client = Client()
        client.force_login(alice)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": loci_server.url}
        context.add_cookies([cookie])
        page = context.new_page()
        page.goto(at)
        return page

    return sign_in

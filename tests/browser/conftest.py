"""Headless Chromium on a live server, and conversations that came in through the real import."""

from __future__ import annotations

import io
import json
import os
import shutil

import pytest
from django.core.management import call_command
from playwright.sync_api import sync_playwright

from settings_app.sign_in import one_time_link
from tests.browser.conversations import CONVERSATIONS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(
            "These tests drive a browser. Install Chromium or Chrome so that it is on PATH."
        )
    with sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread; the tests' own queries are not within it.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def furnished(live_server, palace, tmp_path):
    """Alice's palace after an import."""
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join(json.dumps(conversation) for conversation in CONVERSATIONS))
    silent = io.StringIO()
    call_command("import_chats", file, "--user", "alice", "--yes", stdout=silent, stderr=silent)
    return palace


@pytest.fixture
def open_context(browser, live_server):
    """Makes browser windows; each must ask this server only, and break no rule of its policy."""
    contexts, faults = [], []

    def open_one(**options):
        context = browser.new_context(base_url=live_server.url, **options)
        context.set_default_timeout(15_000)
        context.on("request", lambda request: note_foreign(request.url))
        context.on("console", lambda message: note_violation(message.text))
        context.on("weberror", lambda fault: faults.append(str(fault.error)))
        contexts.append(context)
        return context

    def note_foreign(url):
        if not url.startswith((live_server.url, "data:", "blob:")):
            faults.append(f"asked for {url}")

    def note_violation(text):
        if "Content Security Policy" in text:
            faults.append(text)

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def signed_in(open_context, alice, live_server):
    """Opens a page for Alice, who comes by a one-time link."""

    def sign_in(**options):
        page = open_context(**options).new_page()
        page.goto(one_time_link(alice))
        assert page.url == f"{live_server.url}/memory/"
        return page

    return sign_in

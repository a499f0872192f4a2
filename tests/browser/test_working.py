"""The page of working memory with something on it: nothing is wrong with it, and deleting works."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from palace.working import put_fields
from palace.working.entries import set_entry
from palace.working.redis_keys import Namespace
from tests.browser.page_checks import faults_in_light_and_dark

pytestmark = pytest.mark.browser

# Without scripts in the exhaustive run alone.
SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]

PAGE = "/memory/working/"
SESSION = Namespace.read("session/8f14e45f-ceea-467f-a8d2-6f0d6bd0a1c3")


@pytest.fixture
def filled(furnished):
    inbox = "12 unread, 3 of them from Nora: the otters, the lease, and the keys to the boat."
    keys = {"inbox": inbox, f"{'very_long_key_' * 10}index": "x" * 3000, "empty": ""}
    for key, value in keys.items():
        tags = ["inbox", "unread", "a tag of several words"]
        set_entry(furnished, SESSION, key, value, category="email/work", tags=tags)
    set_entry(furnished, Namespace.read("patrol/heartbeat"), "alerts", "An otter escaped")
    fields = {
        "scratchpad": "Rule 37 looks wrong for this well.\nAsk again tomorrow.",
        "entities": [{"type": "Well", "id": "42-123-45678", "name": "Smith #1"}],
        "a_name_that_is_rather_long_and_has_no_space_in_it_at_all": "y" * 300,
        "empty": "",
    }
    put_fields(furnished, "conversation-42", fields, ttl_seconds=7 * 86400)
    return furnished


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_is_wrong_with_what_is_on_it(signed_in, filled, width):
    page = signed_in(viewport={"width": width, "height": 844}, reduced_motion="reduce")
    faults = {}
    asked = ("q=otters", "q=zebra", f"under={SESSION}/inbox", "under=patrol/none")
    for query in ("", *(f"?{one}" for one in asked), "?conversation=conversation-42"):
        page.goto(PAGE + query)
        faults[query] = faults_in_light_and_dark(page)
    assert {query: found for query, found in faults.items() if found} == {}


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_an_entry_and_a_field_are_deleted(signed_in, filled, scripts):
    page = signed_in(java_script_enabled=scripts)
    page.goto("/settings/keys/")
    page.get_by_role("link", name="Working memory").click()
    page.get_by_role("button", name="Delete patrol/heartbeat/alerts").click()
    expect(page.get_by_text("patrol/heartbeat/alerts is deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="patrol/heartbeat")).to_have_count(0)
    page.get_by_role("button", name="Delete scratchpad of conversation-42").press("Enter")
    expect(page.get_by_text("scratchpad of conversation-42 is deleted.")).to_be_visible()
    page.get_by_label("Words in an entry").fill("lease")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name="1 entry found")).to_be_visible()

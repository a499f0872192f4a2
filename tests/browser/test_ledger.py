"""What the model can see, as a person sees it: from the chat to its page, and taken out."""

from __future__ import annotations

import uuid

import pytest
from playwright.sync_api import expect

from chat import replies
from palace.models import Drawer, Fact
from palace.recall.deduplication import fact_entry
from palace.working.ledger import Ledger, LedgerEntry
from settings_app.models import MemorySettings
from tests.browser.page_checks import faults_in_light_and_dark, open_everything
from tests.chat.conftest import finished, let_threads_end
from tests.factories import EntityFactory, EvidenceFactory, FactFactory

pytestmark = pytest.mark.browser

# Without scripts in the exhaustive run alone.
SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]

QUESTIONS = ("Which wire became too hot?", "What should we see in Lisbon?")


@pytest.fixture
def talk(alice, furnished, model_server):
    """Two questions and their replies; the second one's block carries what the first was given."""
    MemorySettings(
        owner=alice, provider=model_server.base_url, model="test-model", auto_mine=False
    ).save()
    drawer = Drawer.objects.filter(palace=furnished, role="user").first()
    user = EntityFactory(palace=furnished, name="User", slug="user")
    EvidenceFactory(fact=FactFactory(subject=user, text="User sails the efoil"), drawer=drawer)
    conversation = replies.start(furnished, None, QUESTIONS[0], key=uuid.uuid4())
    finished(conversation)
    replies.say(conversation, QUESTIONS[1], key=uuid.uuid4())
    finished(conversation)
    let_threads_end()
    ledger = Ledger(furnished, str(conversation.uuid))
    ledger.mark(
        LedgerEntry("skill:rowing"), fact_entry(Fact.objects.first(), 0, "since March 2025")
    )
    return conversation


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_is_wrong_with_what_is_on_it(signed_in, talk, width):
    page = signed_in(viewport={"width": width, "height": 844}, reduced_motion="reduce")
    faults = {}
    for address in (f"/chat/{talk.uuid}/ledger/", f"/chat/{talk.uuid}/"):
        page.goto(address)
        open_everything(page)
        faults[address] = faults_in_light_and_dark(page)
    assert {address: found for address, found in faults.items() if found} == {}


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_from_the_chat_to_its_page_and_something_is_taken_out(signed_in, talk, scripts):
    page = signed_in(java_script_enabled=scripts)
    page.goto(f"/chat/{talk.uuid}/")
    expect(page.get_by_text("Still visible from earlier").first).to_be_attached()
    page.get_by_role("link", name="What the model can see").click()
    expect(page.get_by_role("heading", name="What the model can see")).to_be_visible()
    page.get_by_role("button", name="Stop using skill:rowing").press("Enter")
    expect(page.get_by_text("The model no longer sees it")).to_be_visible()
    expect(page.get_by_text("skill:rowing")).to_have_count(0)
    page.get_by_role("link", name=QUESTIONS[0]).first.click()
    expect(page.locator(".said-by-user").first).to_contain_text(QUESTIONS[0])

"""Parts of pages are exchanged while one reads: nothing that stays is moved by it."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from chat.models import Conversation, Message
from chat.views import message_actions
from palace.models import Drawer, Fact, ImportJob
from palace.views.shared.query_params import PAGE_SIZE
from tests.browser.keys import press
from tests.browser.page_checks import WATCH_SHIFTS, has_settled, noticeable_shifts
from tests.factories import DrawerFactory, EntityFactory, EvidenceFactory, FactFactory, RoomFactory
from tests.knowledge.dreaming.conftest import proposed

pytestmark = pytest.mark.browser

# Of a shift that soon after a key or a click, a browser says that its user caused it.
EXCUSED_S = 0.5


def answer_late(route):
    if "hx-request" in route.request.headers:
        time.sleep(EXCUSED_S + 0.1)
    route.continue_()


def review(page, palace):
    """One that others follow, and then several."""
    user = EntityFactory(palace=palace, name="User", slug="user")
    for number in range(4):
        proposed(palace, "drop", FactFactory(subject=user, text=f"User hums tune {number}"))
    page.goto(reverse("inbox"))
    yield
    press(page, "j", "a")
    expect(page.locator(".proposal.decided")).to_be_visible()
    has_settled(page)
    press(page, "j", "x")
    page.get_by_role("button", name="Accept selected").press("Enter")
    expect(page.locator("#inbox > .message")).to_be_visible()


def more_facts(page, palace):
    subject = EntityFactory(palace=palace, name="Anna")
    FactFactory.create_batch(PAGE_SIZE + 5, subject=subject)
    page.goto(reverse("facts"))
    yield
    page.get_by_role("link", name="Show more").press("Enter")
    expect(page.locator(".fact")).to_have_count(PAGE_SIZE + 5)


def going_anywhere(page, palace):
    page.goto(reverse("chat"))
    yield
    press(page, "Control+k")
    found = page.locator("#go-found")
    expect(found.get_by_role("link").first).to_be_visible()
    page.keyboard.type("webhooks")
    expect(found.get_by_role("link", name="Webhooks", exact=True)).to_be_visible()


def import_in_the_header(page, palace):
    job = ImportJob.objects.create(
        palace=palace,
        file_name="talks.jsonl",
        status=ImportJob.Status.RUNNING,
        messages_total=4000,
        progress_at=timezone.now(),
    )
    page.goto(reverse("chat"))
    shown = page.locator("#import-now")
    expect(shown).to_contain_text("0 of 4,000 messages")
    yield
    job.messages_stored = 1200
    job.measured_from = timezone.now() - timedelta(minutes=3)
    job.save()
    expect(shown).to_contain_text("left at this speed")
    job.status, job.messages_stored = ImportJob.Status.DONE, 4000
    job.save()
    expect(shown).to_contain_text("Done")


def memory_chips(page, palace):
    """A fact comes to one message; of the other the page asks until it gives up."""
    now = timezone.now()
    talk = Conversation.objects.create(palace=palace, title="Wires", spoke_at=now)
    texts = ("I live in Porto.", "The kettle is on.", "Good.")
    learnt, *_ = [
        Message.objects.create(
            palace=palace, conversation=talk, position=place, role="user", text=text, said_at=now
        )
        for place, text in enumerate(texts)
    ]
    page.goto(talk.get_absolute_url())
    chips = page.locator(".learnt[hx-get]")
    expect(chips).to_have_count(len(texts))
    yield
    drawer = DrawerFactory(
        room=RoomFactory(wing__palace=palace),
        source="chat",
        conversation=str(talk.uuid),
        external_id=str(learnt.uuid),
        text=learnt.text,
    )
    Drawer.objects.filter(pk=drawer.pk).update(facts_read_at=now)
    fact = FactFactory(subject=EntityFactory(palace=palace, name="User", slug="user"))
    Fact.objects.filter(pk=fact.pk).update(recorded_at=timezone.now())
    EvidenceFactory(fact=fact, drawer=drawer)
    expect(page.locator(".learnt summary").first).to_contain_text("Memory updated")
    expect(chips).to_have_count(0)


@pytest.mark.parametrize(
    "swap",
    [review, more_facts, going_anywhere, import_in_the_header, memory_chips],
    ids=lambda swap: swap.__name__,
)
def test_nothing_moves_when_a_part_is_exchanged(signed_in, palace, monkeypatch, swap):
    monkeypatch.setattr(message_actions, "POLLS_S", (1, 1))
    page = signed_in(viewport={"width": 1280, "height": 900})
    steps = swap(page, palace)
    next(steps)
    page.wait_for_load_state()
    page.evaluate(WATCH_SHIFTS)
    page.route("**/*", answer_late)
    next(steps, None)
    has_settled(page)
    assert noticeable_shifts(page) == []

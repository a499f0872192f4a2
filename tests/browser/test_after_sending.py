"""After sending: the question stays in view, and the reply grows below it without a jump."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from chat.models import Conversation, Message
from settings_app.accounts import one_time_link
from settings_app.models import MemorySettings
from tests.browser.endless_reply import Gated

pytestmark = pytest.mark.browser

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
QUESTION = "Which wire became too hot, and what do I know of rye?"
PARAGRAPH = "The thicker wire carries the current, and the short run keeps it cool. " * 4
# The first part alone is longer than either window.
FIRST, REST = f"{PARAGRAPH}\n\n" * 12, f"{PARAGRAPH}\n\n" * 6
# Pixels. A line of the folded summary, with its space.
LINE = 40


@pytest.fixture
def model(alice, model_server):
    MemorySettings.objects.create(
        owner=alice, provider=model_server.base_url, model="test-model", auto_mine=False
    )
    return model_server


@pytest.fixture
def talk(furnished):
    """A conversation of eight questions with long replies."""
    conversation = Conversation.objects.create(
        palace=furnished, title="Wires", spoke_at=timezone.now()
    )
    Message.objects.bulk_create(
        Message(
            palace=furnished,
            conversation=conversation,
            position=place,
            role="assistant" if place % 2 else "user",
            text=f"{PARAGRAPH}\n\n" * 6 if place % 2 else f"What of wire number {place}?",
            said_at=timezone.now(),
        )
        for place in range(16)
    )
    return conversation


def send(page, text=QUESTION):
    before = last_reply(page).get_attribute("id")
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()
    # A page that is loaded again shows the latest ten messages, as before.
    expect(last_reply(page)).not_to_have_id(before)


def last_question(page):
    return page.locator(".said-by-user").last


def last_reply(page):
    return page.locator(".said-by-agent").last


def wait_for_first_part(page):
    expect(last_reply(page).locator(".prose > p").nth(11)).to_be_visible()


def positions(page):
    """Tops in the window, once the page stands still: the last question, the first line of its
    reply, and the box to write in, which covers what is behind it."""
    return page.evaluate(
        """() => new Promise(resolve => {
          const top = (selector) =>
            [...document.querySelectorAll(selector)].at(-1).getBoundingClientRect().top;
          let before = scrollY, still = 0;
          requestAnimationFrame(function look() {
            still = scrollY === before ? still + 1 : 0;
            before = scrollY;
            if (still < 8) return requestAnimationFrame(look);
            resolve([".said-by-user", ".said-by-agent .said-who", "#composer"].map(top));
          });
        })"""
    )


def is_in_view(page):
    asked, replied, end = positions(page)
    return 0 <= asked < end and asked < replied < end - LINE


@pytest.mark.parametrize(
    "motion", [pytest.param("no-preference", marks=pytest.mark.exhaustive), "reduce"]
)
@pytest.mark.parametrize(
    "size", [DESK, pytest.param(PHONE, marks=pytest.mark.exhaustive)], ids=["desk", "phone"]
)
def test_the_question_stays_at_the_top_while_a_long_reply_grows(
    signed_in, talk, model, size, motion
):
    page = signed_in(at=talk.get_absolute_url(), viewport=size, reduced_motion=motion)
    assert is_in_view(page)
    with Gated(FIRST, REST) as reply:
        model.answer(reply)
        send(page)
        remembered = last_reply(page).locator("details.remembered")
        expect(remembered.locator("summary").first).to_contain_text("Remembered")
        assert is_in_view(page)
        assert positions(page)[0] < 2 * LINE
        asked_at = positions(page)[0]
        wait_for_first_part(page)
        assert positions(page)[0] == asked_at
        reply.go_on()
        expect(last_reply(page)).not_to_have_attribute("aria-busy", "true")
    assert positions(page)[0] == asked_at
    assert is_in_view(page)
    # What was remembered is one folded line, above the reply.
    expect(remembered).not_to_have_attribute("open", "")
    line, prose = remembered.bounding_box(), last_reply(page).locator(".prose").bounding_box()
    assert line["height"] <= LINE
    assert line["y"] < prose["y"] < size["height"] / 2


@pytest.mark.exhaustive
def test_a_short_reply_leaves_the_question_where_it_is(signed_in, talk, model):
    page = signed_in(at=talk.get_absolute_url(), viewport=DESK, reduced_motion="reduce")
    for _ in range(2):
        send(page, "And?")
        expect(last_reply(page).locator(".prose")).to_have_text("OK.")
        expect(last_reply(page)).not_to_have_attribute("aria-busy", "true")
        assert is_in_view(page)
        assert positions(page)[0] < 2 * LINE
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("1 earlier version put aside")).to_be_visible()
    assert is_in_view(page)


@pytest.mark.exhaustive
def test_the_end_of_a_very_long_question_leaves_room_for_the_reply(signed_in, talk, model):
    page = signed_in(at=talk.get_absolute_url(), viewport=PHONE, reduced_motion="reduce")
    send(page, f"{PARAGRAPH}\n\n" * 20)
    expect(last_reply(page).locator(".prose")).to_have_text("OK.")
    _asked, replied, end = positions(page)
    assert 0 < replied < end - 4 * LINE


@pytest.mark.exhaustive
def test_a_reader_who_scrolls_is_left_alone_and_who_goes_to_the_end_reads_along(
    signed_in, talk, model
):
    page = signed_in(at=talk.get_absolute_url(), viewport=DESK, reduced_motion="reduce")
    with Gated(FIRST, REST) as reply:
        model.answer(reply)
        send(page)
        wait_for_first_part(page)
        page.evaluate("scrollBy(0, -700)")
        before = positions(page)
        reply.go_on()
        expect(last_reply(page)).not_to_have_attribute("aria-busy", "true")
    assert positions(page) == before
    with Gated(FIRST, REST) as reply:
        model.answer(reply)
        send(page)
        wait_for_first_part(page)
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        positions(page)
        reply.go_on()
        expect(last_reply(page)).not_to_have_attribute("aria-busy", "true")
    positions(page)
    left = "document.documentElement.scrollHeight - scrollY - innerHeight"
    assert page.evaluate(left) < LINE


@pytest.mark.exhaustive
def test_what_was_unfolded_stays_so_when_the_reply_is_whole(signed_in, talk, model):
    page = signed_in(at=talk.get_absolute_url(), viewport=DESK, reduced_motion="reduce")
    with Gated(FIRST, REST) as reply:
        model.answer(reply)
        send(page)
        last_reply(page).locator(".remembered > summary").press("Enter")
        expect(last_reply(page).get_by_role("link", name="Why these?")).to_be_visible()
        reply.go_on()
        expect(last_reply(page)).not_to_have_attribute("aria-busy", "true")
    expect(last_reply(page).get_by_role("link", name="Why these?")).to_be_visible()
    expect(last_reply(page).locator(".remembered > summary")).to_be_focused()


@pytest.mark.exhaustive
def test_without_javascript_the_page_lands_at_the_question(open_context, talk, alice, model):
    page = open_context(java_script_enabled=False, viewport=DESK).new_page()
    page.goto(one_time_link(alice))
    page.goto(f"{talk.get_absolute_url()}#latest")
    with Gated(FIRST, REST) as reply:
        model.answer(reply)
        send(page)
        expect(page.get_by_text("is writing …")).to_be_visible()
        assert 0 <= last_question(page).bounding_box()["y"] < 3 * LINE
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert 0 <= last_question(page).bounding_box()["y"] < 3 * LINE

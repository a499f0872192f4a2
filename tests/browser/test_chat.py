"""Talking, as a person sees it: words as they come, stopping, trying again, a second tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chat.models import Message
from settings_app.accounts import one_time_link
from settings_app.models import MemorySettings
from tests.browser.endless_reply import Gated
from tests.browser.page_checks import has_settled
from tests.model_server import Status, Text

pytestmark = pytest.mark.browser

QUESTION = "Which wire became too hot?"
# Long enough for somebody to look on, to stop it, and to open another tab.
STORY = Text("Once upon a time a wire was *far* too thin. " * 60, pause_s=0.02)


@pytest.fixture
def model(alice, model_server):
    chosen = MemorySettings(owner=alice, provider=model_server.base_url, model="test-model")
    chosen.save()
    return model_server


@pytest.fixture
def page(signed_in, furnished):
    return signed_in(at="/chat/", viewport={"width": 1280, "height": 900})


def begin(page, text):
    page.get_by_label("A new conversation").fill(text)
    page.get_by_role("button", name="Send").click()


def replies(page):
    return page.locator(".said-by-agent")


def test_words_are_seen_as_they_come(page, model):
    growing = replies(page).locator(".prose")
    with Gated("Once upon a time a wire was *far* ", "too thin.") as story:
        model.answer(story)
        begin(page, QUESTION)
        expect(growing.locator("em").first).to_have_text("far")
        expect(replies(page)).to_have_attribute("aria-busy", "true")
        # What was remembered stands there before the reply is whole.
        expect(replies(page).locator(".remembered > summary")).to_contain_text("Remembered")
        expect(replies(page).locator(".remembered")).to_contain_text("silicone wire")
    expect(growing).to_contain_text("too thin.")
    expect(replies(page)).not_to_have_attribute("aria-busy", "true", timeout=20_000)
    kept = Message.objects.get(role="assistant").text
    assert kept.startswith("Once upon a time a wire was *far* and ")
    assert kept.endswith("and too thin.")


def test_a_reply_is_stopped_and_tried_again(page, model):
    model.script([STORY])
    model.answer("Eight.")
    begin(page, QUESTION)
    expect(replies(page).locator("em").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("You stopped this reply here.")).to_be_visible()
    assert Message.objects.get(role="assistant").status == "stopped"
    page.get_by_role("button", name="Try again").click()
    expect(replies(page).locator(".prose")).to_have_text("Eight.")
    expect(page.get_by_text("1 earlier version put aside")).to_be_visible()


@pytest.mark.exhaustive
def test_a_second_tab_sees_the_same(page, model):
    model.answer(STORY)
    begin(page, QUESTION)
    expect(replies(page).locator("em").first).to_be_visible()
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".said-by-agent em").first).to_be_visible()
    other.get_by_role("button", name="Stop").click()
    for tab in (page, other):
        expect(tab.get_by_text("You stopped this reply here.")).to_be_visible()
    assert replies(page).locator(".prose").inner_text() == (
        other.locator(".said-by-agent .prose").inner_text()
    )


@pytest.mark.exhaustive
def test_a_closed_tab_stops_nothing(page, model):
    model.answer(Text("Eight gauge, and short. " * 10, pause_s=0.02))
    begin(page, QUESTION)
    expect(replies(page)).to_have_attribute("aria-busy", "true")
    where = page.url
    again = page.context.new_page()
    page.close()
    again.goto(where)
    expect(again.locator(".said-by-agent")).not_to_have_attribute("aria-busy", "true")
    assert Message.objects.get(role="assistant").status == "done"


def test_the_conversation_goes_on_from_the_keyboard(page, model):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    page.evaluate("window.samePage = true")
    box = page.get_by_label("Your message")
    box.fill("One line")
    box.press("Shift+Enter")
    box.type("and another")
    box.press("Enter")
    expect(replies(page)).to_have_count(2)
    expect(replies(page).last.locator(".prose")).to_have_text("OK.")
    assert page.evaluate("window.samePage")
    assert page.locator(".said-by-user .said-text").last.text_content() == ("One line\nand another")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    # Only the last reply can be tried again.
    expect(page.get_by_role("button", name="Try again")).to_have_count(1)


@pytest.mark.exhaustive
def test_what_is_refused_stays_in_the_box(page, model):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    page.get_by_label("Your message").fill("x" * 200_001)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("at most 200,000")
    # The page asks by itself what was learnt, and the reason stays.
    with page.expect_response(lambda response: "/memory/" in response.url):
        pass
    has_settled(page)
    expect(page.get_by_role("alert")).to_contain_text("at most 200,000")
    assert len(page.get_by_label("Your message").input_value()) == 200_001


@pytest.mark.exhaustive
def test_a_model_that_fails_is_reported_with_its_reason(page, model, settings):
    settings.LLM_MAX_RETRIES = 0
    model.answer(Status(401, code="invalid_api_key"))
    begin(page, QUESTION)
    expect(replies(page).locator(".said-note")).to_contain_text("key")
    expect(replies(page).locator("blockquote").first).to_contain_text("silicone wire")


@pytest.mark.exhaustive
def test_a_quoted_drawer_is_a_click_away(page):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_contain_text("No language model is set")
    replies(page).locator("blockquote a.pointer").first.click()
    expect(page.locator("#text")).to_contain_text("silicone wire")


@pytest.mark.exhaustive
def test_talking_works_without_javascript(open_context, furnished, alice, model):
    model.answer(Text("Eight gauge, and short. " * 40, pause_s=0.02))
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    page.goto("/chat/")
    begin(page, QUESTION)
    expect(page.get_by_text("is writing …")).to_be_visible()
    # The page reloads itself until the reply is whole.
    expect(page.get_by_role("button", name="Try again")).to_be_visible(timeout=30_000)
    assert Message.objects.get(role="assistant").text == "Eight gauge, and short. " * 40
    model.answer("Yes.")
    page.get_by_label("Your message").fill("Sure?")
    page.get_by_role("button", name="Send").click()
    expect(replies(page).last.locator(".prose")).to_have_text("Yes.", timeout=30_000)
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("Title").fill("Hot wires")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Hot wires")


@pytest.mark.exhaustive
def test_the_focus_stays_with_the_button_that_was_pressed(page, model):
    model.script([STORY, STORY])
    begin(page, QUESTION)
    expect(replies(page).locator("em").first).to_be_visible()
    page.get_by_role("button", name="Stop").focus()
    for now_there in ("Try again", "Stop", "Try again"):
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name=now_there)).to_be_focused()
        # Until then a form is a plain one, and would load the page again.
        has_settled(page)


@pytest.mark.exhaustive
def test_what_is_typed_while_a_message_is_on_its_way_is_kept(page, model):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    on_their_way = []
    page.route("**/say/", lambda route: on_their_way.append(route))
    box = page.get_by_label("Your message")
    box.fill("The first")
    box.press("Enter")
    box.press_sequentially(" and the next")
    on_their_way[0].continue_()
    expect(replies(page)).to_have_count(2)
    expect(box).to_have_value(" and the next")
    expect(page.locator(".said-by-user .said-text").last).to_have_text("The first")


@pytest.mark.exhaustive
def test_words_arrive_as_they_were_typed(page, model):
    text = "\n  Leading, <b>tags</b> & &amp; 🏛️ \u202eback\u202c\ttab\n\n  trailing  \n"
    begin(page, text)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    said = Message.objects.get(role="user")
    assert said.text == text
    shown = page.locator(".said-by-user .said-text").evaluate("element => element.textContent")
    assert shown == text
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(replies(page)).to_have_count(2)
    assert Message.objects.filter(role="user").last().text == text


@pytest.mark.exhaustive
def test_a_double_click_says_it_once(page, model):
    page.get_by_label("A new conversation").fill(QUESTION)
    page.get_by_role("button", name="Send").dblclick()
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    page.get_by_label("Your message").fill("More")
    page.get_by_role("button", name="Send").dblclick()
    expect(replies(page)).to_have_count(2)
    expect(replies(page).last.locator(".prose")).to_have_text("OK.")
    assert Message.objects.count() == 4


@pytest.mark.exhaustive
def test_on_a_touch_screen_enter_begins_a_line(signed_in, furnished, model):
    page = signed_in(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.goto("/chat/")
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    box = page.get_by_label("Your message")
    box.press_sequentially("One line\nand another")
    expect(box).to_have_value("One line\nand another")
    page.get_by_role("button", name="Send").tap()
    expect(replies(page)).to_have_count(2)


@pytest.mark.exhaustive
def test_offline_or_signed_out_the_box_keeps_its_words(page, model, alice):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    box = page.get_by_label("Your message")
    send = page.get_by_role("button", name="Send")
    box.fill("Not to be lost")
    page.context.set_offline(True)
    send.click()
    expect(page.locator("#notice")).to_contain_text("did not answer")
    page.context.set_offline(False)
    other = page.context.new_page()
    other.goto("/chat/")
    other.locator(".account-menu summary").click()
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_label("Password")).to_be_visible()
    send.click()
    expect(page.locator("#notice")).to_contain_text("signed out")
    expect(box).to_have_value("Not to be lost")
    alice.refresh_from_db()
    other.goto(one_time_link(alice))
    expect(other.get_by_role("heading", name="Conversations")).to_be_visible()
    send.click()
    expect(replies(page)).to_have_count(2)
    expect(box).to_have_value("")
    assert Message.objects.filter(text="Not to be lost").count() == 1


@pytest.mark.exhaustive
def test_the_way_back_leads_to_an_empty_box(page, model):
    begin(page, QUESTION)
    expect(replies(page).locator(".prose")).to_have_text("OK.")
    page.go_back()
    begin(page, "Something else")
    expect(page.locator(".said-by-user")).to_contain_text("Something else")
    assert Message.objects.filter(role="user").count() == 2

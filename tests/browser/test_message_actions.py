"""Memory, edits, files and drafts in the chat, with scripts and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chat.models import Conversation, Message
from palace.models import Drawer
from settings_app.accounts import one_time_link
from settings_app.models import MemorySettings
from tests.browser.endless_reply import Gated
from tests.browser.keys import press
from tests.browser.page_checks import (
    WATCH_SHIFTS,
    faults_in_light_and_dark,
    has_settled,
    noticeable_shifts,
)

pytestmark = pytest.mark.browser

MOVED = "I just moved to Porto, near the aquarium."
FILE = {"name": "bread.md", "mimeType": "text/markdown", "buffer": b"The starter is Ottokar.\n"}


@pytest.fixture
def model(alice, model_server):
    MemorySettings.objects.create(owner=alice, provider=model_server.base_url, model="test-model")
    return model_server


def begin(page, text):
    page.get_by_label("A new conversation").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".said-by-agent .prose")).to_have_text("OK.")


def test_a_reply_streams_without_a_shift(signed_in, furnished, model):
    page = signed_in(at="/chat/", viewport={"width": 1280, "height": 900})
    begin(page, "Which wire became too hot?")
    page.evaluate(WATCH_SHIFTS)
    with Gated("One line.\n\nAnd *another*, ", "then the end.\n\n```py\nx = 1\n```") as reply:
        model.answer(reply)
        page.get_by_label("Your message").fill("And then?")
        page.get_by_label("Your message").press("Enter")
        growing = page.locator(".said-by-agent").last
        expect(growing.locator("em").first).to_be_visible()
        reply.go_on()
        expect(growing).not_to_have_attribute("aria-busy", "true")
    expect(growing.locator(".code-mi")).to_have_text("1")
    has_settled(page)
    assert noticeable_shifts(page) == []


@pytest.mark.exhaustive
def test_what_was_learnt_appears_by_itself_and_is_undone(signed_in, furnished, model, loci_worker):
    page = signed_in(at="/chat/", reduced_motion="reduce")
    begin(page, MOVED)
    loci_worker.finish()
    chip = page.locator(".said-by-user .learnt summary").first
    expect(chip).to_have_text(re.compile("Memory updated: You live in Porto"))
    chip.click()
    undo = page.get_by_role("button", name="Undo: You live in Porto")
    has_settled(page)
    undo.press("Enter")
    expect(page.locator(".learnt")).to_contain_text(["Memory update undone"])
    again = page.get_by_role("button", name="Learn it again")
    expect(again).to_be_focused()
    has_settled(page)
    again.press("Enter")
    expect(chip).to_contain_text("Memory updated")
    expect(undo).to_be_focused()
    assert faults_in_light_and_dark(page) == []
    page.locator(".said-by-user").get_by_role("button", name="Forget this").click()
    expect(page.get_by_text("it is in the trash")).to_be_visible()
    assert Drawer.objects.trashed().get().text == MOVED


def test_by_keys_a_message_is_forgotten_and_its_conversation_renamed(signed_in, furnished, model):
    page = signed_in(at="/chat/")
    begin(page, MOVED)
    forget = page.locator(".said-by-user").get_by_role("button", name="Forget this")
    forget.press("Enter")
    expect(page.locator(".said-by-user").get_by_role("button", name="Undo")).to_be_focused()
    has_settled(page)
    press(page, "u")
    expect(forget).to_be_focused()
    page.locator("h1").click()
    press(page, "j")
    expect(page.locator(".talk-link")).to_be_focused()
    press(page, "e")
    expect(page.get_by_label("Title")).to_be_focused()
    page.get_by_role("link", name="Cancel").click()
    page.locator("h1").click()
    press(page, "#")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Delete")
    assert Conversation.objects.count() == 1


def test_a_draft_stays_with_its_conversation_until_it_is_sent(signed_in, furnished, model):
    page = signed_in(at="/chat/")
    begin(page, "Hello")
    where = page.url
    box = page.get_by_label("Your message")
    box.fill("Half a thou")
    page.goto("/chat/")
    expect(page.get_by_label("A new conversation")).to_have_value("")
    page.goto(where)
    expect(box).to_have_value("Half a thou")
    box.press("Enter")
    expect(page.locator(".said-by-agent")).to_have_count(2)
    page.goto(where)
    expect(box).to_have_value("")


@pytest.mark.exhaustive
def test_chosen_files_are_named_and_taken_away(signed_in, furnished):
    page = signed_in(at="/chat/")
    named, remove = (
        page.locator(".attach-help"),
        page.get_by_role("button", name="Remove the files"),
    )
    expect(remove).to_be_hidden()
    page.get_by_label("Attach text files").set_input_files(FILE)
    expect(named).to_have_text("bread.md")
    remove.click()
    expect(named).to_contain_text("or drop them here")
    expect(remove).to_be_hidden()
    assert page.locator("#files").evaluate("input => input.files.length") == 0


def test_files_are_dropped_in(signed_in, furnished, model):
    page = signed_in(at="/chat/")
    page.get_by_label("A new conversation").fill("What is it called?")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["The starter is Ottokar.\\n"], "bread.md"));
          document.body.dispatchEvent(
            new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }"""
    )
    expect(page.locator(".attach-help")).to_have_text("bread.md")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".attachment-name")).to_have_text("bread.md")
    expect(page.locator(".said-by-agent .prose")).to_have_text("OK.")
    assert Message.objects.get(file_name="bread.md").text == "The starter is Ottokar.\n"


@pytest.mark.exhaustive
def test_all_of_it_works_without_javascript(open_context, furnished, alice, model):
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    page.goto("/chat/")
    page.get_by_label("A new conversation").fill("Between us: I moved to Porto.")
    page.get_by_label("Off the record").check()
    page.get_by_label("Attach text files").set_input_files(FILE)
    page.get_by_role("button", name="Send").click()
    retry = page.get_by_role("button", name="Try again")
    expect(retry).to_be_visible()
    expect(page.get_by_role("note")).to_contain_text("Nothing said here enters your palace")
    page.locator(".said-by-user").last.get_by_role("link", name="Edit").click()
    page.get_by_label("Your message").fill("Between us: I moved to Braga.")
    page.get_by_role("button", name="Send again").click()
    expect(retry).to_be_visible()
    expect(page.locator(".said-by-user").last).to_contain_text("Braga")
    page.get_by_label("Search in this conversation").fill("braga")
    page.locator(".talk-find button").click()
    expect(page.locator("mark")).to_have_text("Braga")
    page.get_by_role("link", name="Earlier versions", exact=True).click()
    expect(page.locator(".version")).to_contain_text("Porto")
    page.go_back()
    question = page.locator(".said-by-user").last
    question.get_by_role("button", name="Remember this").click()
    expect(question.get_by_role("link", name="Kept")).to_be_visible()
    said = Conversation.objects.get().uuid
    kept = Drawer.objects.filter(conversation=str(said)).values_list("text", flat=True)
    assert list(kept) == ["Between us: I moved to Braga."]


def test_what_a_search_found_is_in_view(signed_in, furnished, model):
    page = signed_in(at="/chat/", viewport={"width": 390, "height": 500})
    model.answer("A paragraph.\n\n" * 40)
    page.get_by_label("A new conversation").fill("The otters sleep.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("button", name="Try again")).to_be_attached()
    page.goto(f"{page.url.split('#')[0]}?find=otters")
    expect(page.get_by_role("heading", name="1 message with")).to_be_in_viewport()

"""From the first start to the settings, as somebody does it who has just installed Loci."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer
from settings_app.accounts import FIRST_LINK_LASTS, one_time_link
from tests.browser.conversations import CONVERSATIONS

pytestmark = pytest.mark.browser

QUESTION = "Which wire became too hot?"
OVERHEATED = "I tried a 12-AWG silicone wire from the battery to the controller and it overheated."
POINTER = re.compile(r"W-\d+/R-\d+/D-\d+")
# A model's instructions say what a pointer looks like, which is no drawer's.
BLOCK = re.compile(r"<memory_context>.*?</memory_context>", re.DOTALL)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join(map(json.dumps, CONVERSATIONS)))
    return file


def import_file(page, file, worker):
    page.get_by_label("The file with your conversations").set_input_files(file)
    page.get_by_role("button", name="Preview file").click()
    expect(page.get_by_role("row", name=re.compile("^Messages 10"))).to_be_visible()
    page.get_by_role("button", name="Start the import").click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("row", name=re.compile("new in your palace 10"))).to_be_visible()
    worker.finish()


def ask(page, text):
    """Returns the reply, when it has been written."""
    replies = page.locator(".said-by-agent")
    before = replies.count()
    page.locator("textarea").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(replies).to_have_count(before + 1)
    expect(replies.last.get_by_text("is writing")).to_have_count(0)
    return replies.last


def go_to_chat(page):
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Chat").click()


def go_to_settings(page):
    page.locator(".account-menu summary").click()
    page.get_by_role("navigation", name="Your account").get_by_role("link", name="Settings").click()


def choose_model(page, server):
    go_to_settings(page)
    page.get_by_role("link", name="Model & privacy").click()
    page.get_by_label("Provider").select_option(label="Another address")
    page.get_by_label("Address").fill(server.base_url)
    page.get_by_label("Model", exact=True).fill("small")
    page.get_by_label("API key").fill("a-key-of-alices")


def answer_from_memory(request):
    """As a model does that reads what it is given."""
    block = BLOCK.search(request.prompt)
    pointers = POINTER.findall(block[0]) if block else []
    return f"The **12-AWG** one, as you said [§ {pointers[0]}]." if pointers else "I cannot know."


@pytest.mark.exhaustive
def test_from_the_first_start_to_the_settings(
    open_context, loci_worker, alice, palace, model_server, file
):
    model_server.answer(answer_from_memory)
    page = open_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(one_time_link(alice, lasts=FIRST_LINK_LASTS))
    go_to_chat(page)
    page.get_by_role("link", name="bring in earlier conversations").click()
    import_file(page, file, loci_worker)

    go_to_chat(page)
    reply = ask(page, QUESTION)
    expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
    expect(reply).to_contain_text("No language model is set")
    expect(reply.get_by_role("blockquote").first).to_contain_text(OVERHEATED)
    expect(reply.locator(".remembered > summary")).to_contain_text("Remembered")

    choose_model(page, model_server)
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("status")).to_contain_text("small")
    page.get_by_role("button", name="Save").last.click()
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("status").first).to_have_text("Connected.")
    assert "a-key-of-alices" not in page.content()

    go_to_chat(page)
    page.get_by_role("link", name=QUESTION).click()
    reply = ask(page, "And now in your own words: which wire became too hot?")
    drawer = Drawer.objects.with_place().get(palace=palace, text=OVERHEATED)
    expect(reply.locator(".remembered .cited")).to_contain_text(OVERHEATED)
    assert model_server.requests[-1].headers["authorization"] == "Bearer a-key-of-alices"

    reply.locator(".prose").get_by_role("link", name=str(drawer.pointer)).click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_text("Moved 1 message to the trash.")).to_be_visible()
    other_tab = page.context.new_page()
    other_tab.goto(f"{reverse('memory')}?q={QUESTION}")
    expect(other_tab.locator(".hits")).not_to_contain_text(OVERHEATED)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)
    other_tab.reload()
    expect(other_tab.locator(".hits")).to_contain_text(OVERHEATED)

    go_to_settings(page)
    page.get_by_label("Use memory").uncheck()
    page.get_by_role("button", name="Save").last.click()
    expect(page.get_by_label("Use memory")).not_to_be_checked()
    other_tab.goto(reverse("chat"))
    reply = ask(other_tab, "Which wire was it again?")
    expect(reply).to_contain_text("I cannot know.")
    expect(reply).to_contain_text("Memory is switched off in the settings.")
    page.get_by_role("link", name="Model & privacy").click()
    page.get_by_role("link", name="Costs", exact=True).click()
    expect(page.get_by_role("row", name=re.compile("^Chat not known 3")).first).to_be_visible()
    loci_worker.finish()
    assert Drawer.objects.within(palace).filter(source="chat", text=QUESTION).exists()
    assert not Drawer.objects.within(palace).filter(text="Which wire was it again?").exists()


@pytest.mark.exhaustive
def test_the_same_without_javascript(open_context, loci_worker, alice, palace, model_server, file):
    model_server.answer(answer_from_memory)
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    go_to_chat(page)
    page.get_by_role("link", name="bring in earlier conversations").click()
    import_file(page, file, loci_worker)

    choose_model(page, model_server)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#trial")).to_contain_text("small")
    page.get_by_label("API key").fill("a-key-of-alices")
    page.get_by_role("button", name="Save").last.click()
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("status").first).to_have_text("Connected.")

    go_to_chat(page)
    reply = ask(page, QUESTION)
    drawer = Drawer.objects.with_place().get(palace=palace, text=OVERHEATED)
    reply.locator(".prose").get_by_role("link", name=str(drawer.pointer)).click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)
    page.get_by_role("button", name="Move to the trash").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)

    go_to_settings(page)
    page.get_by_label("Use memory").uncheck()
    page.get_by_role("button", name="Save").last.click()
    go_to_chat(page)
    reply = ask(page, "Which wire was it again?")
    expect(reply).to_contain_text("Memory is switched off in the settings.")

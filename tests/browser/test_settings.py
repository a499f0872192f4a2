"""Choosing a model as people do it: with the mouse, with the keyboard, without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from settings_app.models import MemorySettings, settings_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

KEY = "sk-proj-this-is-a-secret-key"


def choose(page, model_server):
    page.get_by_label("Provider").select_option("Another address")
    page.get_by_label("Address").fill(model_server.base_url)
    page.get_by_label("Model", exact=True).fill("gpt-4o-mini")
    page.get_by_label("API key").fill(KEY)


def test_a_model_is_chosen_tried_asked_about_and_connected(signed_in, alice, model_server):
    page = signed_in(at="/settings/model/")
    expect(page.get_by_label("API key")).to_be_hidden()
    choose(page, model_server)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#trial")).to_contain_text("works: it answered in")
    assert page.get_by_label("API key").input_value() == KEY  # Still there to be saved.
    # The Enter key saves, though other buttons come first in the form.
    page.get_by_label("API key").press("Enter")
    expect(page.get_by_role("status").first).to_have_text("Saved, and not connected yet.")
    expect(page.get_by_role("heading", name="Connect this model?")).to_be_visible()
    expect(page.locator(".where")).to_contain_text(model_server.base_url.split("/")[2])
    page.get_by_label("Facts").press("Space")
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("status").first).to_have_text("Connected.")
    chosen = settings_of(alice.pk)
    assert chosen.endpoint().api_key == KEY
    assert (chosen.awaits_consent, "facts" in chosen.uses, len(chosen.uses)) == (False, False, 4)
    page.get_by_role("link", name="Sent", exact=True).click()
    expect(page.locator(".sent-row")).to_contain_text("a test of the connection")
    page.get_by_role("link", name="Model", exact=True).click()
    expect(page.get_by_text("A key is saved.")).to_be_visible()
    page.locator("details.folded > summary").click()
    page.get_by_label("Reranking model").fill("small-one")
    page.get_by_role("button", name="Remove the key").click()
    expect(page.get_by_text("The key was removed.")).to_be_visible()
    # What else was typed is not lost by it, nor saved.
    expect(page.get_by_label("Reranking model")).to_have_value("small-one")
    chosen = MemorySettings.objects.get(owner=alice)
    assert (chosen.rerank_model, chosen.has_key) == ("", False)


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.exhaustive), 390])
@pytest.mark.parametrize(
    "at",
    [
        "/settings/",
        pytest.param("/settings/model/", marks=pytest.mark.exhaustive),
        pytest.param("/settings/model/uses/", marks=pytest.mark.exhaustive),
    ],
)
def test_save_is_always_in_sight(signed_in, at, width):
    page = signed_in(at=at, viewport={"width": width, "height": 700})
    for details in page.locator("details.folded > summary").all():
        details.click()
    for share in (0, 0.5, 1):
        page.evaluate(f"scrollTo(0, {share} * document.body.scrollHeight)")
        save = page.get_by_role("button", name="Save", exact=True).last
        box = save.bounding_box()
        at_its_middle = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y)?.textContent.trim()",
            [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2],
        )
        assert at_its_middle == "Save"  # Neither below the fold nor behind the bar of a phone.


def test_how_to_look_is_chosen_by_the_arrow_keys(signed_in, alice):
    page = signed_in(at="/settings/")
    expect(page.get_by_label("Thorough")).to_be_hidden()  # Folded until it is asked for.
    page.locator("details.folded > summary").press("Enter")
    thorough, by_words = (page.get_by_label(label) for label in ("Thorough", "By words alone"))
    expect(thorough).to_be_checked()
    thorough.press("ArrowUp")
    expect(by_words).to_be_checked()
    by_words.press("Enter")
    expect(page.get_by_role("status").first).to_have_text("Saved.")
    page.locator("details.folded > summary").click()
    expect(by_words).to_be_checked()
    assert settings_of(alice.pk).recipe == "keyword"


@pytest.mark.exhaustive
def test_the_focus_stays_where_a_button_was_pressed(signed_in, model_server):
    page = signed_in(at="/settings/model/")
    choose(page, model_server)
    page.get_by_role("button", name="Test").press("Enter")
    expect(page.locator("#trial")).to_contain_text("works: it answered in")
    expect(page.get_by_role("button", name="Test")).to_be_focused()
    page.get_by_label("API key").press("Enter")
    page.goto("/settings/model/")
    page.get_by_role("button", name="Remove the key").press("Enter")
    expect(page.get_by_text("The key was removed.")).to_be_visible()
    expect(page.get_by_label("API key")).to_be_focused()


def test_the_page_shows_what_belongs_to_the_provider(signed_in):
    page = signed_in(at="/settings/model/")
    page.locator("details.folded > summary").click()
    page.get_by_label("Provider").select_option("OpenAI")
    expect(page.get_by_label("Address")).to_be_hidden()
    expect(page.get_by_label("API key")).to_be_visible()
    expect(page.get_by_text("Left empty: gpt-5-nano")).to_be_visible()
    page.get_by_label("Provider").select_option("No model")
    expect(page.get_by_label("Model", exact=True)).to_be_hidden()
    expect(page.get_by_text("Left empty: gpt-5-nano")).to_be_hidden()


@pytest.mark.exhaustive
def test_all_of_it_works_without_javascript(signed_in, alice, model_server):
    page = signed_in(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page.goto("/settings/model/")
    choose(page, model_server)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#trial")).to_contain_text("works: it answered in")
    expect(page.get_by_text("type it again before you save")).to_be_visible()
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_have_text("Saved, and not connected yet.")
    page.get_by_label("Dreams").uncheck()
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("status").first).to_have_text("Connected.")
    assert "dreams" not in settings_of(alice.pk).uses
    page.goto("/settings/sent/")
    expect(page.locator(".sent-row")).to_have_count(1)  # The test of the connection.
    page.goto("/settings/model/")
    page.get_by_role("button", name="Remove the key").click()
    expect(page.get_by_role("status").first).to_have_text("The key was removed.")
    assert not settings_of(alice.pk).has_key


@pytest.mark.parametrize(
    "at", ["/settings/webhooks/", "/memory/cases/", "/memory/people-and-things/?kind=person"]
)
def test_on_a_phone_tabs_are_one_row_that_begins_at_the_current_one(signed_in, at):
    page = signed_in(at=at, viewport={"width": 390, "height": 844})
    for row in page.locator(".tabs").all():
        tops = row.locator("a").evaluate_all("tabs => tabs.map(tab => tab.offsetTop)")
        assert len(set(tops)) == 1
        expect(row.locator("[aria-current]")).to_be_in_viewport(ratio=0.9)
    last = page.locator(".tabs").last.locator("a").last
    last.focus()
    expect(last).to_be_in_viewport(ratio=0.9)

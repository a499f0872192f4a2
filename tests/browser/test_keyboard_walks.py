"""What people do most, with the keyboard alone: no click, no field filled by a script."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from palace.models import Drawer, Fact, Wing
from settings_app.models import MemorySettings
from tests.browser.conversations import CONVERSATIONS
from tests.browser.keys import press, tab_to
from tests.factories import EntityFactory, EvidenceFactory, FactFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def activate(page, target, key="Enter"):
    """Go to a link or button by Tab, and press it."""
    tab_to(page, target)
    press(page, key)


def write(page, field, text):
    tab_to(page, field)
    press(page, "Control+a")
    page.keyboard.type(text)


@pytest.mark.exhaustive
def test_a_keeping_rule_is_previewed_changed_and_set(signed_in, furnished):
    wing = Wing.objects.within(furnished).exclude(number=Wing.UNSORTED).order_by("number").first()
    page = signed_in(at=wing.get_absolute_url())
    activate(page, page.get_by_role("link", name="Keeping"))
    months = page.get_by_label("Keep messages for this many months")
    write(page, months, "1200")
    press(page, "Enter")
    expect(page.get_by_text("Of what is here now, nothing would go.")).to_be_visible()
    # Enter in a field previews what is written there now, and sets nothing.
    write(page, months, "1")
    press(page, "Enter")
    expect(page.get_by_text("would go to the trash now")).to_be_visible()
    wing.refresh_from_db()
    assert wing.kept_months is None
    assert not Drawer.objects.within(furnished).trashed().exists()
    activate(page, page.get_by_role("button", name="Save, and move"))
    saved = page.get_by_text("Saved. Moved ")
    expect(saved).to_be_visible()
    wing.refresh_from_db()
    assert wing.kept_months == 1
    assert Drawer.objects.within(furnished).trashed().exists()
    press(page, "u")
    expect(saved).to_have_count(0)
    wing.refresh_from_db()
    assert wing.kept_months is None
    assert not Drawer.objects.within(furnished).trashed().exists()


@pytest.mark.exhaustive
def test_a_file_is_chosen_previewed_and_imported(signed_in, palace, loci_worker, tmp_path):
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(json.dumps(each) for each in CONVERSATIONS))
    page = signed_in(at="/chat/")
    press(page, "g", "i")
    expect(page.get_by_role("heading", level=1)).to_have_text("Import conversations")
    # Expected early: a dialog that opens before the browser knows of it is the system's own.
    with page.expect_file_chooser() as chooser:
        tab_to(page, page.locator("input[type=file]"))
        press(page, "Space")
    chooser.value.set_files(file)
    activate(page, page.get_by_role("button", name="Preview file"))
    activate(page, page.get_by_role("button", name="Start the import"))
    loci_worker.finish()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    said = sum(len(each["messages"]) for each in CONVERSATIONS)
    assert Drawer.objects.within(palace).count() == said


def test_one_talks_with_a_model_and_tries_again(signed_in, alice, palace, model_server):
    MemorySettings(owner=alice, provider=model_server.base_url, model="test-model").save()
    page = signed_in(at="/memory/")
    press(page, "g", "c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Chat")
    write(page, page.get_by_label("A new conversation"), "Which wire became too hot?")
    press(page, "Enter")
    replies = page.locator(".said-by-agent .prose")
    expect(replies).to_have_text(["OK."])
    write(page, page.get_by_label("Your message"), "And why?")
    press(page, "Enter")
    expect(replies).to_have_text(["OK.", "OK."])
    activate(page, page.get_by_role("button", name="Try again"))
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(replies).to_have_text(["OK.", "OK."])


def test_a_fact_is_edited_and_forgotten_by_tab_and_enter(signed_in, furnished):
    robin = EntityFactory(palace=furnished, name="Robin", slug="robin")
    fact = FactFactory(subject=robin, predicate="works_at", text="Robin works at Wireworks")
    drawer = Drawer.objects.within(furnished).order_by("pk").first()
    EvidenceFactory(fact=fact, drawer=drawer, start=0, end=drawer.text.index(" "))
    page = signed_in(at="/chat/")
    press(page, "g", "f")
    activate(page, page.get_by_role("link", name=fact.text))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(fact.text)
    activate(page, page.get_by_role("link", name="Edit", exact=True))
    write(page, page.get_by_label("What it should say"), "Robin works at Wireworks as a welder")
    activate(page, page.get_by_role("button", name="Save"))
    expect(heading).to_have_text("Robin works at Wireworks as a welder")
    activate(page, page.get_by_role("link", name="Forget", exact=True))
    activate(page, page.get_by_role("button", name="Forget the fact only"))
    expect(page.get_by_text("Fact forgotten.")).to_be_visible()
    assert not Fact.objects.active().filter(memory=fact.memory).exists()
    activate(page, page.get_by_role("button", name="Undo"))
    expect(page.get_by_text("Fact restored.")).to_be_visible()
    assert Fact.objects.active().filter(memory=fact.memory).exists()

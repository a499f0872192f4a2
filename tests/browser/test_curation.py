"""Pruning and ordering the palace as a person does it: with and without JavaScript."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from chat.models import Conversation
from palace.curation.trash import move_to_trash
from palace.models import Drawer, Room, Wing
from settings_app.accounts import one_time_link
from tests.browser.keys import press
from tests.browser.test_onboarding import OVERHEATED, QUESTION, search
from tests.factories import DrawerFactory, EntityFactory, FactFactory, RoomFactory, WingFactory

pytestmark = pytest.mark.browser

# Without scripts in the exhaustive run alone.
SCRIPTS = [True, pytest.param(False, marks=pytest.mark.exhaustive)]


@pytest.fixture
def drawer(furnished):
    return Drawer.objects.with_place().get(palace=furnished, text=OVERHEATED)


def open_branches(page, drawer):
    page.goto("/memory/?view=list")
    for name in (drawer.room.wing.name, drawer.room.title, drawer.closet.title):
        page.locator("summary", has=page.get_by_text(name, exact=True)).last.click()


@pytest.mark.exhaustive
def test_a_leaf_goes_and_comes_back_in_place(signed_in, drawer):
    page = signed_in()
    open_branches(page, drawer)
    page.evaluate("window.sameDocument = true")
    closet = page.locator(f"#count-{drawer.closet.uuid}")
    before = closet.text_content()
    page.get_by_role("button", name=f"Move {drawer.pointer} to the trash").click()
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    expect(undo).to_have_accessible_description(f"Moved to the trash: {drawer.pointer}")
    expect(page.locator(".leaf", has_text=OVERHEATED)).to_have_count(0)
    expect(closet).not_to_have_text(before)
    expect(page.locator("#totals")).to_contain_text("9 drawers")
    drawer.refresh_from_db()
    assert drawer.trashed_at is not None
    page.keyboard.press("Enter")
    leaf = page.locator(".leaf", has_text=OVERHEATED)
    expect(leaf.get_by_role("link")).to_be_focused()
    expect(closet).to_have_text(before)
    expect(page.locator("#totals")).to_contain_text("10 drawers")
    assert page.evaluate("window.sameDocument")


@pytest.mark.exhaustive
def test_a_leaf_another_tab_deleted_for_good_gets_a_message(signed_in, drawer):
    page = signed_in()
    open_branches(page, drawer)
    button = page.get_by_role("button", name=f"Move {drawer.pointer} to the trash")
    expect(button).to_be_visible()
    Drawer.objects.filter(pk=drawer.pk).delete()
    button.click()
    expect(page.locator("#notice")).to_contain_text("This is no longer here.")


@pytest.mark.parametrize("scripts", SCRIPTS)
def test_delete_undo_restore_and_delete_for_good(open_context, drawer, alice, scripts):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(one_time_link(alice))
    page.goto(drawer.get_absolute_url())
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_text("Moved 1 message to the trash.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("1 drawer is back in place.")).to_be_visible()

    page.goto(drawer.room.get_absolute_url())
    page.get_by_role("link", name="Move to the trash").click()
    page.get_by_role("button", name="Move 4 messages to the trash").click()
    expect(page.get_by_text("Moved 4 messages to the trash.")).to_be_visible()
    page.goto(reverse("memory"))
    search(page, QUESTION)
    expect(page.get_by_text(OVERHEATED)).to_have_count(0)

    page.goto(reverse("memory"))
    page.locator(".account-menu summary").click()
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name=f"Restore {drawer.pointer}").click()
    expect(page.get_by_text("1 drawer is back in place.")).to_be_visible()
    leaf = page.locator(".leaf").first
    leaf.get_by_text("Delete for good", exact=True).click()
    leaf.get_by_role("button", name=re.compile("Delete it now")).click()
    expect(page.get_by_text("The drawer is deleted for good.")).to_be_visible()
    page.get_by_role("link", name="Empty the trash").click()
    page.get_by_role("button", name="Delete all 2 messages for good").click()
    expect(page.get_by_text("2 drawers are deleted for good.")).to_be_visible()
    assert Drawer.objects.filter(room=drawer.room).get() == drawer


@pytest.mark.exhaustive
def test_a_wing_is_renamed_and_merged_without_javascript(open_context, drawer, alice):
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    other, wing = drawer.room.wing, WingFactory(palace=drawer.palace, name="Wires", slug="wires")
    Room.objects.filter(pk=drawer.room.pk).update(wing=wing)
    page.goto(wing.get_absolute_url())
    page.get_by_role("link", name="Rename or merge").click()
    page.get_by_label("Name of the wing").fill(other.name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Another wing has the name")).to_be_visible()
    page.get_by_role("link", name=f"Merge with “{other.name}”").click()
    expect(page.get_by_text("1 room with 4 drawers")).to_be_visible()
    page.get_by_role("button", name="Merge the two").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(other.name)
    page.goto(reverse("activities"))
    expect(page.get_by_role("listitem").filter(has_text="is part of")).to_be_visible()
    assert not Wing.objects.filter(pk=wing.pk).exists()


@pytest.mark.exhaustive
def test_rows_are_selected_by_keys_and_go_and_come_back(signed_in, drawer):
    WingFactory(palace=drawer.palace, name="Derek", slug="derek")
    page = signed_in()
    page.goto(drawer.room.get_absolute_url())
    # Of closets, and of the drawers in them.
    boxes = page.locator(".pick:visible")
    total, drawers = boxes.count(), page.locator(".leaf > .pick:visible").count()
    assert 0 < drawers < total
    page.locator(".branch summary").first.focus()
    press(page, "x")
    expect(page.locator("#selected-count")).to_have_text("1 selected")
    for _ in range(total - 1):
        press(page, "j")
    press(page, "Shift+X")
    expect(page.locator("#selected-count")).to_have_text(f"{total} selected")
    press(page, "#")
    expect(page.get_by_text(f"Moved {drawers} messages to the trash.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text(f"{drawers} drawers are back in place.")).to_be_visible()
    page.goto(drawer.closet.get_absolute_url())
    page.locator(".pick").first.check()
    press(page, "e")
    expect(page.get_by_role("heading", level=1)).to_have_text("Move to another wing")
    page.get_by_label("Wing").select_option("Derek")
    press(page, "Tab", "Enter")
    expect(page.get_by_text("Moved 1 message to “Derek”.")).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("Undone: 1 message moved back.")).to_be_visible()


def test_the_key_of_the_trash_is_for_the_row_of_the_focus(signed_in, drawer):
    other = DrawerFactory(room=RoomFactory(wing=drawer.room.wing))
    wing = drawer.room.wing.get_absolute_url()
    page = signed_in(at=wing)
    # In a list whose rows have no such action, what the page shows stays.
    page.locator(".pick").evaluate_all("boxes => boxes.forEach((box) => box.remove())")
    press(page, "j", "#")
    expect(page.locator(".tree summary").first).to_be_focused()
    assert page.url.endswith(wing)
    page.reload()
    page.locator(f".branch:has([value='{other.room.uuid}']) > details > summary").focus()
    press(page, "#")
    expect(page.get_by_text("Moved 1 message to the trash.")).to_be_visible()
    assert list(Drawer.objects.trashed()) == [other]


def test_the_key_of_editing_is_for_the_row_of_the_focus(signed_in, drawer):
    fact = FactFactory(subject=EntityFactory(palace=drawer.palace))
    talk = Conversation.objects.create(palace=drawer.palace, title="Wires", spoke_at=timezone.now())
    room, closet = drawer.room, drawer.closet
    rows = {
        "/memory/?view=list": ("wing_edit", room.wing.uuid),
        room.wing.get_absolute_url(): ("place_edit", "room", room.uuid),
        room.get_absolute_url(): ("place_edit", "closet", closet.uuid),
        "/memory/facts/": ("correct_fact", fact.memory),
        "/memory/people-and-things/": ("entity_edit", fact.subject.uuid),
        "/chat/": ("rename_conversation", talk.uuid),
    }
    page = signed_in()
    for address, (name, *parts) in rows.items():
        edited = reverse(name, args=parts)
        page.goto(address)
        row = page.locator(f"[data-rows] [data-edit^='{edited}']")
        row.locator("summary, a").first.focus()
        press(page, "e")
        expect(page).to_have_url(re.compile(re.escape(edited)))
    # In a list whose rows cannot be edited, what the page shows stays.
    page.goto(closet.get_absolute_url())
    press(page, "j", "e")
    expect(page.locator(".leaf-link").first).to_be_focused()


def test_in_the_trash_a_letter_restores_what_is_selected(signed_in, drawer):
    move_to_trash(drawer)
    page = signed_in(at=reverse("trash"))
    press(page, "j", "x")
    expect(page.locator("#selected-count")).to_have_text("1 selected")
    press(page, "u")
    expect(page.get_by_text("1 message restored.")).to_be_visible()
    assert not Drawer.objects.trashed().exists()

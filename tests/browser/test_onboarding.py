"""The first door as a person walks through it."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer, Wing
from palace.views.shared.query_params import PAGE_SIZE
from settings_app.accounts import one_time_link
from tests.factories import DrawerFactory, RoomFactory, WingFactory

pytestmark = pytest.mark.browser

QUESTION = "Which wire became too hot?"
OVERHEATED = "I tried a 12-AWG silicone wire from the battery to the controller and it overheated."


def search(page, question):
    page.get_by_label("Search your memory").fill(question)
    page.get_by_role("button", name="Search").click()


def test_sign_in_see_the_import_search_and_open_a_drawer(signed_in, furnished):
    page = signed_in(viewport={"width": 1280, "height": 900})
    expect(page.get_by_text(re.compile(r"10 drawers, each holding one message"))).to_be_visible()
    expect(
        page.get_by_role("region", name="Recent activity").get_by_role("listitem").first
    ).to_be_visible()

    page.evaluate("window.sameDocument = true")
    search(page, QUESTION)
    first = page.locator(".hit").first
    expect(first).to_contain_text(OVERHEATED)
    assert page.evaluate("window.sameDocument")
    assert page.title().startswith(QUESTION)
    expect(page.get_by_role("heading", name=re.compile("found"))).to_be_focused()
    first.locator(".why summary").click()
    expect(first.get_by_text("Meaning", exact=True)).to_be_visible()
    expect(first.locator(".figure").first).to_have_text(re.compile(r"^[+−]\d+\.\d\d$"))
    page.get_by_text("What a model would be given").click()
    expect(page.get_by_role("region", name="The memory block")).to_contain_text("<memory_context>")

    first.get_by_role("link").first.click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)
    expect(page.get_by_role("heading", level=1)).to_contain_text("11 February 2025")
    page.get_by_role("link", name=re.compile("After this, Assistant")).click()
    expect(page.locator("#text")).to_contain_text("Use 8 AWG")

    page.go_back()
    expect(page.locator("#text")).to_have_text(OVERHEATED)
    page.go_back()
    expect(page.locator(".hit").first).to_contain_text(OVERHEATED)
    expect(page.get_by_role("banner")).to_be_visible()


@pytest.mark.exhaustive
def test_the_tree_opens_branch_by_branch(signed_in, furnished):
    page = signed_in()
    page.get_by_role("link", name="List", exact=True).click()
    drawer = Drawer.objects.with_place().get(palace=furnished, text=OVERHEATED)
    for name in (drawer.room.wing.name, drawer.room.title, drawer.closet.title):
        page.locator("summary", has=page.get_by_text(name, exact=True)).last.click()
    leaf = page.locator(".leaf", has_text=OVERHEATED)
    expect(leaf).to_contain_text(str(drawer.pointer))
    leaf.get_by_role("link").click()
    expect(page.locator("#text")).to_have_text(OVERHEATED)


@pytest.mark.exhaustive
def test_everything_works_without_javascript(open_context, furnished, alice, loci_server):
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    page.goto(reverse("memory"))
    page.get_by_role("link", name="List", exact=True).click()
    drawer = Drawer.objects.with_place().get(palace=furnished, text=OVERHEATED)
    wing = drawer.room.wing

    page.locator("summary", has_text=wing.name).click()
    page.get_by_role("link", name="See the rooms of this wing").locator("visible=true").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(wing.name)
    page.get_by_role("link", name=f"Go to the room {drawer.room.title}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(drawer.room.title)
    page.get_by_role("link", name=f"Go to the closet {drawer.closet.title}").click()
    page.locator(".leaf", has_text=OVERHEATED).get_by_role("link").click()
    assert page.locator("#text").text_content() == OVERHEATED

    page.get_by_role("navigation", name="Where").get_by_role("link", name="Palace").click()
    search(page, QUESTION)
    expect(page.locator(".hit").first).to_contain_text(OVERHEATED)
    search(page, " ")
    expect(page.get_by_text("The question is empty")).to_be_visible()
    search(page, str(drawer.pointer))
    expect(page.locator("#text")).to_have_text(OVERHEATED)

    page.locator(".account-menu summary").click()

    page.get_by_role("button", name="Sign out").click()
    assert page.url == loci_server.url + reverse("sign_in")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    assert page.url == loci_server.url + reverse("chat")


VERBATIM = [
    "\n\nline feeds first and last\n\n",
    "Windows\r\nand old\rlines, and both\r\n\r",
    "\tTabs\t and  spaces   at the end   ",
    "<b>not bold</b> & <!-- no comment --> &amp; &#13; &nbsp; </div></main>",
    "zero\u200bwidth, joined\u200dup, marked\ufeff, turned\u202e, bell\x07, and 👩‍👩‍👧 🏛️",
    "\ufeffa mark at the start",
]


@pytest.mark.parametrize(
    "passage", ["", pytest.param("?passage=3-9", marks=pytest.mark.exhaustive)]
)
def test_the_browser_holds_the_words_to_the_character(signed_in, palace, passage):
    room = RoomFactory(wing=WingFactory(palace=palace))
    page = signed_in()
    for drawer in [DrawerFactory(room=room, text=text) for text in VERBATIM]:
        page.goto(drawer.get_absolute_url() + passage)
        assert page.locator("#text").text_content() == drawer.text


@pytest.mark.exhaustive
def test_more_rows_come_in_place_and_take_the_focus(signed_in, palace):
    wing = WingFactory(palace=palace)
    for _ in range(PAGE_SIZE + 2):
        DrawerFactory(room=RoomFactory(wing=wing))
    page = signed_in()
    page.goto(wing.get_absolute_url())
    page.get_by_role("link", name=re.compile("Show 2 more")).click()
    expect(page.locator("main .branch")).to_have_count(PAGE_SIZE + 2)
    expect(page.locator("main .branch").nth(PAGE_SIZE).locator("summary")).to_be_focused()
    expect(page.get_by_role("link", name=re.compile("Show"))).to_have_count(0)


@pytest.mark.exhaustive
def test_a_wrong_question_has_its_error_at_the_field(signed_in, furnished):
    page = signed_in()
    search(page, " ")
    expect(page.get_by_text("The question is empty")).to_be_visible()
    expect(page.get_by_label("Search your memory")).to_be_focused()


@pytest.mark.exhaustive
def test_the_pointer_is_copied(signed_in, palace):
    drawer = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))
    page = signed_in(permissions=["clipboard-read", "clipboard-write"])
    page.goto(drawer.get_absolute_url())
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status")).to_have_text(f"Copied {drawer.pointer}")
    assert page.evaluate("navigator.clipboard.readText()") == str(drawer.pointer)


@pytest.mark.exhaustive
def test_a_branch_that_is_gone_gets_a_message(signed_in, palace):
    wing = WingFactory(palace=palace)
    DrawerFactory(room=RoomFactory(wing=wing))
    page = signed_in()
    page.goto("/memory/?view=list")
    Wing.objects.filter(pk=wing.pk).delete()
    page.locator("summary", has_text=wing.name).click()
    expect(page.locator("#notice")).to_contain_text("This is no longer here.")


@pytest.mark.exhaustive
def test_a_branch_opened_after_signing_out_leads_to_the_sign_in(signed_in, palace):
    wing = WingFactory(palace=palace)
    DrawerFactory(room=RoomFactory(wing=wing))
    page = signed_in()
    page.goto("/memory/?view=list")
    page.context.clear_cookies()
    page.locator("summary", has_text=wing.name).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_keyboard_reaches_the_content_first(signed_in, furnished):
    page = signed_in()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search your memory")).to_be_focused()

"""An account from its making to its end, and the admin site, as people walk through them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import expect

from llm import usage
from settings_app.accounts import one_time_link

pytestmark = pytest.mark.browser

FIRST, SECOND = "a lamp in every window", "a bell on every door"


@pytest.mark.exhaustive
@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_sign_up_choose_a_time_zone_and_a_password_sign_out_and_in(
    open_context, transactional_db, scripts
):
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(reverse("sign_in"))
    page.get_by_role("link", name="Make an account").click()
    page.get_by_label("Name").fill("carol")
    page.get_by_label("Password", exact=True).fill("short")
    page.get_by_label("The same password again").fill("short")
    page.get_by_role("button", name="Make the account").click()
    expect(page.get_by_text("This password is too short.")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("carol")
    page.get_by_label("Password", exact=True).fill(FIRST)
    page.get_by_label("The same password again").fill(FIRST)
    page.get_by_role("button", name="Make the account").click()

    page.locator(".account-menu summary").click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("navigation", name="General").get_by_role("link", name="Account").click()
    page.get_by_label("Time zone").select_option(label="Tokyo")
    page.get_by_role("button", name="Save the time zone").click()
    expect(page.get_by_role("status").first).to_have_text("The time zone is saved.")
    expect(page.locator("time")).to_contain_text("JST")

    page.get_by_label("Current password").fill(FIRST)
    page.get_by_label("New password", exact=True).fill(SECOND)
    page.get_by_label("The new password again").fill(SECOND)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("The new password is set.")).to_be_visible()

    page.locator(".account-menu summary").click()

    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_label("Name").fill("Carol")
    page.get_by_label("Password").fill(SECOND)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".account-menu summary")).to_be_visible()


@pytest.mark.exhaustive
def test_the_other_browser_is_signed_out(signed_in, open_context, alice):
    elsewhere = open_context().new_page()
    page = signed_in()
    elsewhere.goto(one_time_link(User.objects.get(pk=alice.pk)))
    page.goto(reverse("account"))
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_text("Only in this browser.")).to_be_visible()
    elsewhere.reload()
    expect(elsewhere.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_admin_site_keeps_to_the_policy_by_day_and_by_night(
    open_context, transactional_db, alice, scheme
):
    """`open_context` fails the test for every breach that the browser complains of."""
    root = User.objects.create_superuser("root")
    usage.record(purpose="chat", provider="local", model="m", duration_ms=5, owner_id=alice.pk)
    page = open_context(color_scheme=scheme).new_page()
    page.goto(one_time_link(root))
    page.goto(reverse("account"))
    page.get_by_role("link", name="accounts and costs of everybody").click()
    expect(page.get_by_role("heading", name="Accounts and costs")).to_be_visible()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
    assert dark is (scheme == "dark")

    page.get_by_role("link", name="Usage", exact=True).click()
    page.locator("#result_list tbody th a").first.click()
    expect(page.locator("#content")).to_contain_text("Retries and waits included.")
    page.goto(reverse("admin:auth_user_add"))
    page.get_by_label("Username").fill("dora")
    page.get_by_label("Disabled").check()
    page.get_by_role("button", name="Save", exact=True).click()
    # The boxes for permissions are made by a script.
    expect(page.get_by_text("Choose all user permissions")).to_be_visible()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("button", name="Yes, I’m sure").click()
    expect(page.get_by_text("was deleted successfully")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")

"""Every page there is, on a desk and on a phone, by day and by night: nothing is wrong with it."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from api.models import RegisteredApp
from palace.models import Wing
from settings_app import second_step
from settings_app.models import SecondStep
from tests.browser.page_checks import (
    faults_in_light_and_dark,
    layout_faults,
    open_everything,
    rule_faults,
)
from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory
from tests.views.test_isolation import ACTIONS, SHOWN, drop, page_names

pytestmark = pytest.mark.browser

# What has no look of its own: it leads elsewhere, only does something, or is read by programs.
# Where a code is asked for comes after a password, below.
NO_PAGES = {
    *ACTIONS,
    "account_deleted",
    "authorize",
    "delete_working",
    "export_palace",
    "health",
    "health_live",
    "health_ready",
    "home",
    "import_now",
    "message_memory",
    "message_text",
    "metrics",
    "pointer",
    "pointer_path",
    "remove_key",
    "reply_memories",
    "reply_stream",
    "sample_load",
    "sample_remove",
    "sign_in_code",
    "sign_in_once",
    "sign_out",
    "suggest_area",
    "try_cases",
    "try_model",
}
# What only somebody sees who is not signed in.
OUTSIDE = {"sign_in", "sign_up"}
WIDTHS = (1280, 390)


@pytest.fixture
def drawer(furnished):
    """As those who list the addresses want it."""
    # Those count their wings from 1, as the import did.
    Wing.objects.filter(palace=furnished).update(number=F("number") + 100)
    wing = WingFactory(palace=furnished, number=9042, name="Evenings")
    room = RoomFactory(wing=wing, number=9011, title="By the lake")
    closet = ClosetFactory(room=room, title="What was seen")
    text = "A heron stood in the shallows and did not mind us."
    made = DrawerFactory(room=room, closet=closet, number=9007, text=text, tags={"p": ["Derek"]})
    drop(made)
    return made


def consent_address():
    redirects = ["https://app.example.org/callback"]
    app = RegisteredApp.objects.create(
        name="A connector", redirect_uris=redirects, grant_types=["authorization_code"]
    )
    asked = {"response_type": "code", "client_id": app.client_id, "code_challenge": "c" * 43}
    return f"{reverse('authorize')}?{urlencode(asked)}"


def addresses(drawer):
    """Every page's, by name (a new one comes in by itself), and the status it is to have."""
    names = sorted(set(page_names()) - NO_PAGES - OUTSIDE)
    pages = {n: (SHOWN[n](drawer) if n in SHOWN else reverse(n), 200) for n in names}
    return pages | {
        "an app that asks": (consent_address(), 200),
        "an app that is unknown": (reverse("authorize"), 400),
        "a search": (f"{reverse('memory')}?q=Which wire became too hot?", 200),
        "a passage": (f"{drawer.get_absolute_url()}?passage=2-9", 200),
        "an empty question": (f"{reverse('memory')}?q=", 400),
        "a refused link": (reverse("sign_in_once", args=["used"]), 403),
        "what is not there": ("/memory/nothing/", 404),
    }


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wrong_with_any_page(signed_in, drawer, width):
    page = signed_in(viewport={"width": width, "height": 844}, reduced_motion="reduce")
    answers = []
    page.on("response", lambda response: answers.append((response.url, response.status)))
    faults = {}
    for name, (address, status) in addresses(drawer).items():
        answers.clear()
        page.goto(address)
        open_everything(page)
        faults[name] = faults_in_light_and_dark(page)
        faults[name] += [answer for answer in answers if answer[1] >= 400 and answer[1] != status]
        assert answers[0][1] == status
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.lengthy
@pytest.mark.parametrize("half", [0, 1])
def test_on_a_desk_by_day_no_page_breaks_a_rule_or_scrolls_sideways(signed_in, drawer, half):
    page = signed_in(viewport={"width": 1280, "height": 844}, reduced_motion="reduce")
    faults = {}
    for place, (name, (address, status)) in enumerate(list(addresses(drawer).items())[half::2]):
        assert page.goto(address).status == status
        faults[name] = [*layout_faults(page)]
        if place % 2 == 0:
            # All take their parts and colours from the same few; `make test-all` checks each.
            faults[name] += rule_faults(page, colours=place % 4 == 0)
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.exhaustive
def test_enlarged_four_times_no_page_scrolls_sideways(signed_in, drawer):
    page = signed_in(viewport={"width": 320, "height": 256})
    sideways = []
    for name, (address, _status) in addresses(drawer).items():
        page.goto(address)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            sideways.append(name)
    assert sideways == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wrong_with_what_strangers_see(open_context, furnished, width):
    page = open_context(
        viewport={"width": width, "height": 844}, reduced_motion="reduce"
    ).new_page()
    faults = {}
    for name in sorted(OUTSIDE):
        page.goto(reverse(name))
        faults[name] = faults_in_light_and_dark(page)
    page.goto(reverse("sign_in"))
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    faults["a failed sign-in"] = faults_in_light_and_dark(page)
    second_step.begin(furnished.owner)
    SecondStep.objects.update(confirmed_at=timezone.now())
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()
    faults["a code is asked for"] = faults_in_light_and_dark(page)
    assert {name: found for name, found in faults.items() if found} == {}

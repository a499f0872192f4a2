"""`manage.py screenshots`: a picture of every page, light and dark, in several widths.

With `--tour` instead the pictures of `docs/tour.md`, of a running Loci with the sample palace.
"""

from __future__ import annotations

import os
import shutil
from argparse import ArgumentParser
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db.models import Count, Max, Min
from django.urls import reverse
from tqdm import tqdm

from bench.management.commands.bench_pages import Browser, pages_of, search_address, session_of
from bench.runs import UnrestrictedCommand
from palace.models import ImportJob, Palace, Room, Wing
from settings_app.accounts import person_or_owner
from settings_app.fast_reverse import address_of

# First those without windows, which take less processor time.
BROWSERS = (
    *("chromium-headless-shell", "chrome-headless-shell"),
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
SCHEMES = ("light", "dark")
# A wide screen, a small one, and a phone.
WIDTHS = (1440, 1024, 390)
HEIGHT = 900
# Pages that a palace without a chat may lack.
OF_A_TALK = ("conversation_detail", "recall_detail", "fact_detail")
# The tour: a window, how good its pictures are (of 100), and what is said in the chat.
TOUR_WINDOW = {"width": 1280, "height": 900}
TOUR_QUALITY = 52
# Those that the README shows are taken dark, too.
IN_README = ("plan", "memory", "chat")
# The question is one that the sample palace answers.
QUESTION = "Where does Mira’s brother live now?"
SAID = ("I love swimming in cold water, by the way.", QUESTION)
# A reply, and what is learnt from a message, take as long as the machine needs.
PATIENCE_MS = 120_000


class Command(UnrestrictedCommand):
    help = (
        "Take a picture of every page of a running Loci that a user can open. "
        "Needs the development packages and a Chromium."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="Where to put the pictures.")
        parser.add_argument("--base", default="http://localhost:8000", help="Where Loci answers.")
        parser.add_argument("--user", help="A user's name or e-mail address; else the owner.")
        parser.add_argument("--width", type=int, action="append", help="Instead of all widths.")
        parser.add_argument(
            "--scheme", choices=SCHEMES, action="append", help="Instead of light and dark."
        )
        parser.add_argument("--page", action="append", help="Only this address, as /memory/.")
        parser.add_argument("--visible", action="store_true", help="Only what fits on the screen.")
        parser.add_argument(
            "--tour",
            action="store_true",
            help="The pictures of the tour, of a new sample palace; talks in it.",
        )

    def handle(self, *, folder: Path, base: str, user: str | None, **options: Any) -> None:
        person = person_or_owner(user)
        folder.mkdir(parents=True, exist_ok=True)
        palace = Palace.objects.own(person)
        base = base.rstrip("/")
        with session_of(person) as key:
            if options["tour"]:
                self._tour(folder, base, key, palace)
                return
            found = [] if options["page"] else pages_of(Browser(key), palace)
            addresses = {page.name: page.address for page in found}
            addresses |= {address: address for address in options["page"] or []}
            with _signed_in(base, key) as (chromium, state):
                for scheme, width in product(
                    options["scheme"] or SCHEMES, options["width"] or WIDTHS
                ):
                    look = {"color_scheme": scheme, "viewport": {"width": width, "height": HEIGHT}}
                    sheet = chromium.new_context(storage_state=state, **look).new_page()
                    for name, address in tqdm(addresses.items(), f"{scheme} {width}", disable=None):
                        picture = folder / f"{_file_name(name)}-{scheme}-{width}.png"
                        _take(sheet, base + address, picture, whole=not options["visible"])
                    sheet.context.close()
        self.stdout.write(f"{len(addresses)} pages are in {folder}.")
        missing = [] if options["page"] else [name for name in OF_A_TALK if name not in addresses]
        if missing:
            self.stdout.write(
                f"The palace has none of {', '.join(missing)}: say something in the chat first, "
                "or take the pictures of the tour, which does so."
            )

    def _tour(self, folder: Path, base: str, key: str, palace: Palace) -> None:
        rooms = Room.objects.within(palace).filter(source=ImportJob.SAMPLE)
        year = rooms.aggregate(first=Min("started_at"), last=Max("ended_at"))
        if year["first"] is None:
            raise CommandError("The tour shows the sample palace. Choose “Try a sample palace”.")
        day = (year["first"] + (year["last"] - year["first"]) / 3).date()
        at: dict[str, Callable[[Any], None]] = {
            "plan": lambda sheet: sheet.goto(base + reverse("memory")),
            "memory": lambda sheet: sheet.goto(base + search_address(QUESTION)),
            "timeline": lambda sheet: sheet.goto(base + _long_timeline(palace)),
            "day": lambda sheet: sheet.goto(f"{base}{reverse('memory')}?day={day}&basis=said"),
            "chat": lambda sheet: _talk(sheet, base + reverse("chat")),
        }
        with _signed_in(base, key) as (chromium, state):
            window = {"viewport": TOUR_WINDOW, "reduced_motion": "reduce"}
            sheet = chromium.new_context(storage_state=state, **window).new_page()
            for name, go in at.items():
                go(sheet)
                sheet.wait_for_load_state("networkidle")
                # Past the banner of the sample, in the chat to the first message.
                sheet.locator("main .lead, main .said").first.evaluate(
                    "part => scrollBy(0, part.getBoundingClientRect().top - 12)"
                )
                (folder / f"{name}.webp").write_bytes(_picture(sheet))
                if name in IN_README:
                    sheet.emulate_media(color_scheme="dark")
                    (folder / f"{name}-dark.webp").write_bytes(_picture(sheet))
                    sheet.emulate_media(color_scheme="light")
        self.stdout.write(f"{', '.join(at)}: in {folder}.")


def _take(sheet: Any, address: str, picture: Path, *, whole: bool) -> None:
    """
    Args:
        whole: In a window as high as the page, where what is fixed to its end covers nothing.

    Raises:
        CommandError: the page is an error.
    """
    size = sheet.viewport_size
    answer = sheet.goto(address, wait_until="networkidle")
    if answer is None or not answer.ok:
        raise CommandError(f"{address} is an error: {answer and answer.status}.")
    if whole:
        height = sheet.evaluate("document.documentElement.scrollHeight")
        sheet.set_viewport_size({"width": size["width"], "height": max(height, size["height"])})
    sheet.screenshot(path=picture)
    sheet.set_viewport_size(size)


def _long_timeline(palace: Palace) -> str:
    """Its address: of the second wing in size, for the first holds what has no wing of its own."""
    wings = Wing.objects.within(palace).annotate(talks=Count("rooms"))
    *_, (wing,) = wings.order_by("-talks", "number").values_list("uuid")[:2]
    return address_of("wing_timeline", wing)


def _talk(sheet: Any, address: str) -> None:
    """Say something, ask, and wait until Loci has learnt what was said."""
    sheet.goto(address)
    for label, words in zip(("A new conversation", "Your message"), SAID, strict=True):
        sheet.get_by_label(label).fill(words)
        sheet.get_by_role("button", name="Send").click()
        again = sheet.locator(".said").last.get_by_role("button", name="Try again")
        again.wait_for(timeout=PATIENCE_MS)
    sheet.locator(".learnt summary").first.wait_for(timeout=PATIENCE_MS)
    # As for somebody who opens it: the cursor is not in the box.
    sheet.reload()


def _picture(sheet: Any) -> bytes:
    """What is on the screen, in the smallest format that browsers show."""
    session = sheet.context.new_cdp_session(sheet)
    options = {"format": "webp", "quality": TOUR_QUALITY}
    return b64decode(session.send("Page.captureScreenshot", options)["data"])


def _file_name(name: str) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in name).strip("_") or "page"


@contextmanager
def _signed_in(base: str, key: str) -> Iterator[tuple[Any, Any]]:
    """A browser, and the state of its storage with this session.

    Raises:
        CommandError: Playwright is not installed, or the session is not one of that Loci.
    """
    try:
        playwright_api = import_module("playwright.sync_api")
    except ImportError:
        raise CommandError("Install the development packages: make setup-dev.") from None
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright_api.sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread; our queries are not within it.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        chromium = playwright.chromium.launch(executable_path=program)
        page = chromium.new_page()
        page.context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": base}]
        )
        # Without the session it leads to the sign-in.
        page.goto(base + reverse("keyboard"))
        if not page.url.endswith(reverse("keyboard")):
            raise CommandError("The browser was not signed in. Does `--base` lead to this Loci?")
        yield chromium, page.context.storage_state()
        chromium.close()

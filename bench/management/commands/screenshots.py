"""`manage.py screenshots`: a picture of every page, light and dark, in several widths."""

from __future__ import annotations

import os
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from bench.page_times import Browser, pages_of
from bench.runs import UnrestrictedCommand
from palace.models import Palace
from settings_app.sign_in import one_time_link
from settings_app.users import person_or_owner

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCHEMES = ("light", "dark")
# A wide screen, a small one, and a phone.
WIDTHS = (1440, 1024, 390)
HEIGHT = 900


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
        parser.add_argument("--page", action="append", help="Only this address, as /memory/.")
        parser.add_argument("--visible", action="store_true", help="Only what fits on the screen.")

    def handle(self, *, folder: Path, base: str, user: str | None, **options: Any) -> None:
        person = person_or_owner(user)
        pages = pages_of(Browser(person), Palace.objects.own(person))
        found = {page.name: page.address for page in pages}
        addresses = {address: address for address in options["page"] or []} or found
        folder.mkdir(parents=True, exist_ok=True)
        link = base.rstrip("/") + one_time_link(person)
        with _signed_in(link) as (chromium, state):
            for scheme, width in product(SCHEMES, options["width"] or WIDTHS):
                look = {"color_scheme": scheme, "viewport": {"width": width, "height": HEIGHT}}
                sheet = chromium.new_context(storage_state=state, **look).new_page()
                for name, address in tqdm(addresses.items(), f"{scheme} {width}", disable=None):
                    sheet.goto(base.rstrip("/") + address, wait_until="networkidle")
                    picture = folder / f"{_file_name(name)}-{scheme}-{width}.png"
                    sheet.screenshot(path=picture, full_page=not options["visible"])
                sheet.context.close()
        self.stdout.write(f"{len(addresses)} pages are in {folder}.")


def _file_name(name: str) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in name).strip("_") or "page"


@contextmanager
def _signed_in(link: str) -> Iterator[tuple[Any, Any]]:
    """A browser, and the state of its storage after signing in.

    Raises:
        CommandError: Playwright is not installed.
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
        page.goto(link)  # Signs in: whatever button the next page begins with is not ours to press.
        yield chromium, page.context.storage_state()
        chromium.close()

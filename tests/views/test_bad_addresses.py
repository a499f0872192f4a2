"""Whatever an address says behind its question mark, no page fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse

from tests.views.test_isolation import ONES_OWN, SOMEBODYS

# Names as the views read them.
_READ = re.compile(r'(?:GET|sent|asked|query)(?:\.get|\.getlist)?[(\[]\s*"(\w+)"')
VIEWS = ("palace/views", "chat/views", "settings_app")
BAD = {"a NUL": "%00", "no UTF-8": "%FF%FE%F0%9F", "a huge number": "9" * 30}
MORE = {
    "a NUL in a word": "a%00b",
    "a number past 64 bits": "9223372036854775808",
    "a negative number": "-1",
    "no day": "0000-99-99",
    "the last day": "9999-12-31",
    "the first day": "0001-01-01",
    "a digit of another script": "%D9%A3%C2%B2",
    "no row": "00000000-0000-0000-0000-000000000000",
}


def names_read():
    sources = [file for folder in VIEWS for file in Path(settings.BASE_DIR, folder).rglob("*.py")]
    # The day's name is a default value, not written where it is read.
    return sorted({"day"}.union(*(_READ.findall(file.read_text()) for file in sources)))


@pytest.mark.some(1)
@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_no_page_fails_whatever_its_address_says(alices, drawer, value):
    visit_all(alices, drawer, value)


@pytest.mark.exhaustive
@pytest.mark.parametrize("value", MORE.values(), ids=MORE)
def test_no_page_fails_for_other_odd_addresses(alices, drawer, value):
    visit_all(alices, drawer, value)


def visit_all(alices, drawer, value):
    names = names_read()
    assert {"q", "page", "kind", "after", "basis"} <= set(names)
    pages = [reverse(name) for name in sorted(ONES_OWN)]
    pages += [address(drawer) for name, address in SOMEBODYS.items() if name.endswith("_detail")]
    for page in pages:
        for some in (["q"], names, [name for name in names if name != "q"]):
            sent = "&".join(f"{name}={value}" for name in some)
            status = alices.get(f"{page}{'&' if '?' in page else '?'}{sent}").status_code
            assert status < 500, f"{page} for {sent}"

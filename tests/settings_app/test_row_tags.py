"""The quick tags give what Django's own give."""

from __future__ import annotations

from datetime import UTC, date, datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.urls import NoReverseMatch, reverse, set_script_prefix
from django.utils import timezone

from settings_app.fast_reverse import address_of

MOMENTS = [
    datetime(2026, 5, 11, 10, 6, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, 123456, tzinfo=UTC),
    datetime(987, 1, 1, 0, 0, tzinfo=UTC),
]
MINUTE = """<time datetime="{{ at|date:'c' }}">{{ at|date:"j M Y, H:i" }}</time>"""
DAY = """<time datetime="{{ at|date:'c' }}">{{ at|date:"j M Y" }}</time>"""
TEXTS = ["short", "x" * 60, "x" * 61, "", "<b>&amp;</b> " * 20, "e\u0301" * 59, "🏰" * 61]


def drawn(source, **context):
    return Template("{% load row_tags %}" + source).render(Context(context))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
@pytest.mark.parametrize("at", MOMENTS, ids=str)
def test_times_are_written_as_django_writes_them(at, zone):
    with timezone.override(ZoneInfo(zone)):
        assert drawn("{{ at|at_minute }}", at=at) == drawn(MINUTE, at=at)
        assert drawn("{{ at|on_day }}", at=at) == drawn(DAY, at=at)


def test_a_day_has_no_time_zone_and_no_time_is_nothing():
    assert drawn("{{ at|on_day }}", at=date(2026, 3, 1)) == (
        '<time datetime="2026-03-01">1 Mar 2026</time>'
    )
    assert drawn("{{ at|at_minute }}{{ at|on_day }}", at=None) == ""


@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_texts_are_cut_where_django_cuts_them(text):
    assert drawn("{{ text|shortened:60 }}", text=text) == drawn(
        "{{ text|truncatechars:60 }}", text=text
    )


def test_addresses_are_those_of_their_pages():
    one, other = uuid4(), uuid4()
    for parts in (
        ("wing_detail", one),
        ("wing_detail", other),
        ("review_room", one, "keep"),
        ("review_room", one, "trash"),
        ("trash_place", "drawer", other),
        ("message_fact", one, other),
        ("message_fact", other, one),
    ):
        name, *args = parts
        assert address_of(*parts) == reverse(name, args=args)
    assert drawn("{% address 'place_edit' kind one %}", kind="room", one=one) == reverse(
        "place_edit", args=["room", one]
    )
    assert address_of("memory") == reverse("memory")


def test_addresses_are_below_where_the_program_is_served():
    one = uuid4()
    before = address_of("wing_detail", one)
    set_script_prefix("/loci/")
    try:
        assert address_of("wing_detail", one) == f"/loci{before}"
    finally:
        set_script_prefix("/")


def test_what_is_no_id_leads_nowhere():
    with pytest.raises(NoReverseMatch):
        address_of("wing_detail", "no id")

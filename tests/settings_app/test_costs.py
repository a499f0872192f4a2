"""What the models cost: one's own calls, by month and purpose, in one's own time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from llm import usage
from llm.models import Usage
from llm.usage import Totals
from palace.curation import deletion
from settings_app.models import MemorySettings
from settings_app.row_tags import dollars

pytestmark = pytest.mark.django_db

THIS_YEAR = timezone.now().year
# On New Year's Day the year before has not ended yet, as rows may come late.
LAST_YEAR = (timezone.now() - usage.LATE_FOR).year - 1
CHAT, EXTRACT = Usage.Purpose.CHAT, Usage.Purpose.MEMORY_EXTRACT


@pytest.fixture
def page(client, alice):
    """What Alice sees at `page(year=…, show=…)`."""
    client.force_login(alice)

    def get(status=200, headers=None, **query):
        response = client.get(reverse("costs"), query, headers=headers)
        assert response.status_code == status
        return response.text

    return get


def call(owner, when=None, *, purpose=CHAT, cost: str | None = "0.5", tokens=(100, 10), **how):
    usage = Usage.objects.create(
        owner=owner,
        purpose=purpose,
        provider="openai",
        model="gpt-4o-mini",
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        cost_usd=None if cost is None else Decimal(cost),
        duration_ms=10,
        **how,
    )
    Usage.objects.filter(pk=usage.pk).update(
        created_at=when or datetime(LAST_YEAR, 3, 5, tzinfo=UTC)
    )
    return usage


def rows_of(text):
    """The words of each row of both tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


def test_the_page_says_so_if_no_model_was_ever_asked(page):
    text = page()
    assert "No model has been called yet." in text
    assert "<table" not in text


def test_calls_are_summed_by_month_and_purpose(page, alice):
    call(alice, purpose=CHAT, cost="0.25", tokens=(1000, 200))
    call(alice, purpose=CHAT, cost="1.50", tokens=(500, 34))
    call(alice, purpose=EXTRACT, cost="0.01", tokens=(9, 8), outcome="model_refused")
    call(alice, datetime(LAST_YEAR, 4, 1, tzinfo=UTC), cost="2")
    rows = rows_of(page(year=LAST_YEAR))
    assert "March Reading conversations $0.01 1 1 9 8" in rows
    assert "Chat $1.75 2 0 1,500 234" in rows
    assert "April Chat $2.00 1 0 100 10" in rows
    assert f"All of {LAST_YEAR} $3.76 4 1 1,609 252" in rows
    assert "Chat $3.75 3 0 1,600 244" in rows  # The year's, by purpose.


def test_only_ones_own_calls_count(page, alice, bob):
    call(alice, cost="0.25")
    call(bob, cost="1000")
    call(None, cost="5000")
    text = page(year=LAST_YEAR)
    assert f"All of {LAST_YEAR} $0.25 1 0 100 10" in rows_of(text)
    assert "1,000" not in text


def test_a_broken_off_call_is_not_a_failed_one(page, alice):
    call(alice, outcome="cancelled")
    call(alice, outcome="crashed")
    assert "$1.00</strong> for 2 calls, of which 1 failed." in page(year=LAST_YEAR)


def test_a_price_that_is_not_known_is_not_nothing(page, alice):
    call(alice, cost=None)
    text = page(year=LAST_YEAR)
    assert "March Chat not known 1 0 100 10" in rows_of(text)
    assert "Cost not known</strong>" in text
    assert "Loci does not know the price of 1 call" in text
    assert "$0" not in text


def test_calls_that_cost_nothing_cost_nothing(page, alice):
    call(alice, cost="0")
    text = page(year=LAST_YEAR)
    assert "March Chat $0 1 0 100 10" in rows_of(text)
    assert "not known" not in text


def test_where_some_prices_are_known_both_are_shown(page, alice):
    call(alice, cost="0.20")
    call(alice, cost=None)
    text = page(year=LAST_YEAR)
    assert "March Chat $0.20 and 1 not known 2 0 200 20" in rows_of(text)
    assert "they come on top of this sum" in text


def test_a_failed_call_that_used_nothing_is_not_of_unknown_price(page, alice):
    call(alice, cost=None, tokens=(0, 0), outcome="model_refused")
    assert "March Chat $0 1 1 0 0" in rows_of(page(year=LAST_YEAR))


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        ("0", "$0"),
        ("0.00000000", "$0"),
        ("0.00000001", "$0.00000001"),
        ("0.00000585", "$0.0000058"),
        ("0.00012", "$0.00012"),
        ("0.0049", "$0.0049"),
        ("0.05", "$0.05"),
        ("0.0500", "$0.05"),
        ("0.999", "$1.00"),
        ("1", "$1.00"),
        ("1204.5", "$1,204.50"),
        ("1204567.891", "$1,204,567.89"),
    ],
)
def test_small_amounts_are_not_rounded_to_nothing(amount, written):
    assert dollars(Decimal(amount)) == written


def test_a_small_sum_is_shown_with_its_digits(page, alice):
    call(alice, cost="0.00000585")
    assert "$0.0000058</strong>" in page(year=LAST_YEAR)


def test_months_are_those_of_ones_own_time_zone(page, alice):
    MemorySettings.objects.create(owner=alice, time_zone="Pacific/Auckland")
    call(alice, datetime(LAST_YEAR, 5, 31, 13, tzinfo=UTC))  # 1 June in Auckland.
    call(alice, datetime(LAST_YEAR - 1, 12, 31, 12, tzinfo=UTC))  # 1 January in Auckland.
    text = page(year=LAST_YEAR)
    assert "January Chat $0.50 1 0 100 10" in rows_of(text)
    assert "June Chat $0.50 1 0 100 10" in rows_of(text)
    assert "time zone Pacific/Auckland" in text
    assert f'id="year-{LAST_YEAR - 1}"' not in text


def test_what_belongs_to_a_month_is_counted_there_alone(alice):
    zone = ZoneInfo("America/New_York")
    call(alice, datetime(LAST_YEAR, 1, 1, 0, 0, tzinfo=zone))
    call(alice, datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=zone))
    call(alice, datetime(THIS_YEAR, 1, 1, 0, 0, tzinfo=zone))
    with timezone.override(zone):
        found = usage.by_month(alice.pk, LAST_YEAR)
    assert [(row.month.month, row.totals.calls) for row in found] == [(1, 1), (12, 1)]


def test_any_year_since_the_first_call_can_be_chosen(page, alice):
    call(alice, datetime(THIS_YEAR - 2, 7, 1, tzinfo=UTC))
    text = page()
    for year in (THIS_YEAR, LAST_YEAR, THIS_YEAR - 2):
        assert f'id="year-{year}"' in text
    assert f'id="year-{THIS_YEAR - 3}"' not in text
    assert f"No model was called in {THIS_YEAR}." in text
    assert "July Chat" in " ".join(rows_of(page(year=THIS_YEAR - 2)))


@pytest.mark.parametrize(
    "year", ["1066", str(THIS_YEAR + 1), "99999", "-1", "abc", "²⁰²⁵", "2" * 400, "<script>"]
)
def test_an_invalid_year_gets_a_message(page, alice, year):
    call(alice)
    text = page(status=400, year=year)
    assert "There are no figures of that year." in text
    assert "<script>" not in text


def test_the_bars_are_in_proportion_and_stacked(page, alice):
    call(alice, purpose=EXTRACT, cost="1")
    call(alice, purpose=CHAT, cost="3")
    call(alice, datetime(LAST_YEAR, 4, 5, tzinfo=UTC), cost="2")
    text = page(year=LAST_YEAR)
    drawn = re.findall(r'<rect x="(\S+)%" width="(\S+)%" height="20" fill="url\(#([^)]+)\)"', text)
    assert drawn == [
        ("0.0", "25.0", "fill-memory_extract"),
        ("25.0", "75.0", "fill-chat"),
        ("0.0", "50.0", "fill-chat"),
    ]
    assert len(re.findall('class="month-bar"', text)) == 12


def test_every_purpose_has_a_pattern_of_its_own(page, alice):
    for purpose in Usage.Purpose:
        call(alice, purpose=purpose)
    text = page(year=LAST_YEAR)
    for purpose in Usage.Purpose:
        assert f'<pattern id="fill-{purpose.value}"' in text
        assert text.count(f"url(#fill-{purpose.value})") == 2  # Its bar, and the legend.


def test_bars_of_nothing_but_free_calls_show_the_calls(page, alice):
    call(alice, cost="0")
    text = page(year=LAST_YEAR)
    assert "Calls by month" in text
    assert 'width="100.0%"' in text


@pytest.mark.parametrize(
    ("show", "title", "sum_"),
    [
        ("cost", "Cost by month", "$0.50"),
        ("tokens", "Tokens by month", "110"),
        ("calls", "Ca", "1"),
    ],
)
def test_the_bars_show_what_is_asked_for(page, alice, show, title, sum_):
    call(alice)
    text = page(year=LAST_YEAR, show=show)
    assert title in text
    assert f'<span class="month-sum">{sum_}</span>' in text


def test_an_unknown_measure_is_the_usual_one(page, alice):
    call(alice)
    assert "Cost by month" in page(year=LAST_YEAR, show="weight")


def test_this_years_bars_end_with_this_month(page, alice):
    call(alice, timezone.now())
    assert len(re.findall('class="month-bar"', page())) == timezone.now().month


def test_htmx_gets_the_part_only(page, alice):
    call(alice)
    text = page(headers={"HX-Request": "true"}, year=LAST_YEAR)
    assert text.lstrip().startswith('<div class="costs" id="costs">')
    assert "<html" not in text


def test_the_number_of_queries_does_not_grow_with_the_calls(page, alice):
    call(alice)
    with CaptureQueriesContext(connection) as few:
        page(year=LAST_YEAR)
    # The first call of the year is another, so what the cache has does not count.
    for month in range(1, 13):
        for purpose in Usage.Purpose:
            call(alice, datetime(LAST_YEAR, month, 3, tzinfo=UTC), purpose=purpose)
    with CaptureQueriesContext(connection) as many:
        page(year=LAST_YEAR)
    assert len(few) == len(many)
    reading = [query["sql"] for query in many if "llm_usage" in query["sql"]]
    # Since when there are calls, the year's first one, its totals, and whether it is still there.
    assert len(reading) == 4


def test_ended_months_are_added_up_once_and_running_ones_each_time(page, alice):
    call(alice)
    first = page(year=LAST_YEAR)
    with CaptureQueriesContext(connection) as again:
        assert rows_of(page(year=LAST_YEAR)) == rows_of(first)
    assert not [query["sql"] for query in again if "SUM(" in query["sql"]]
    call(alice, timezone.now(), cost="0.25")
    assert f"All of {THIS_YEAR} $0.25 1 0 100 10" in rows_of(page(year=THIS_YEAR))
    call(alice, timezone.now(), cost="0.25")
    assert f"All of {THIS_YEAR} $0.50 2 0 200 20" in rows_of(page(year=THIS_YEAR))


def test_the_totals_of_each_year_and_time_zone_are_kept_together(alice):
    call(alice)
    call(alice, datetime(LAST_YEAR - 1, 6, 1, tzinfo=UTC))
    asked = [(LAST_YEAR, "UTC"), (LAST_YEAR - 1, "UTC"), (LAST_YEAR, "Asia/Tokyo")]
    first = [by_month_in(alice, *each) for each in asked]
    with CaptureQueriesContext(connection) as again:
        assert [by_month_in(alice, *each) for each in asked] == first
    assert not [query["sql"] for query in again if "SUM(" in query["sql"]]


def by_month_in(owner, year, zone):
    with timezone.override(ZoneInfo(zone)):
        return usage.by_month(owner.pk, year)


def test_no_totals_are_kept_of_an_account_that_operators_delete(
    alice, bob, django_capture_on_commit_callbacks
):
    kept = []
    for owner in (alice, bob):
        call(owner)
        usage.by_month(owner.pk, LAST_YEAR)
        kept.append(usage._TOTALS % owner.pk)
    assert set(cache.get_many(kept)) == set(kept)
    with django_capture_on_commit_callbacks(execute=True):
        alice.delete()
    assert list(cache.get_many(kept)) == kept[1:]


@pytest.mark.django_db(transaction=True)
def test_without_redis_an_account_waits_until_its_totals_are_deleted(alice, settings):
    call(alice)
    usage.by_month(alice.pk, LAST_YEAR)
    key, owner, caches = usage._TOTALS % alice.pk, alice.pk, settings.CACHES
    nowhere = "unix:///nowhere/redis.sock"
    settings.CACHES = {"default": {**caches["default"], "LOCATION": nowhere}}
    deletion.close_account(alice)
    assert not deletion.delete_account(owner)
    settings.CACHES = caches
    assert cache.get(key)
    deletion.delete_closed_accounts()
    assert not User.objects.filter(pk=owner).exists()
    assert cache.get(key) is None


def test_no_totals_are_kept_of_an_account_that_is_closed_while_they_are_added_up(alice):
    call(alice)
    key, owner = usage._TOTALS % alice.pk, alice.pk

    def close_first(execute, sql, *more):
        if "SUM(" in sql:
            found = execute(sql, *more)
            Usage.objects.filter(owner_id=owner).delete()
            usage.forget_totals(owner)
            return found
        return execute(sql, *more)

    with connection.execute_wrapper(close_first):
        usage.by_month(owner, LAST_YEAR)
    assert cache.get(key) is None


def test_without_the_cache_the_months_are_added_up(page, alice, settings):
    nowhere = "unix:///nowhere/redis.sock"
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": nowhere}}
    call(alice)
    assert f"All of {LAST_YEAR} $0.50 1 0 100 10" in rows_of(page(year=LAST_YEAR))


def test_without_sign_in_one_is_asked_to(client):
    response = client.get(reverse("costs"))
    assert response.url.startswith(f"{reverse('sign_in')}?next=")


def test_sums_add_up():
    some = Totals(1, 2, 3, 4, Decimal("0.5"), 6)
    assert some + some == Totals(2, 4, 6, 8, Decimal("1.0"), 12)

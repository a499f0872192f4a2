"""Meter every call to a model, price it, and report what a user has spent."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import redis
from django.core.cache import caches
from django.db.models import Count, F, Func, IntegerField, Min, Q, Sum, Value
from django.utils import timezone
from prometheus_client import Counter, Histogram
from pydantic import BaseModel, ConfigDict, Field

from llm import providers, sent
from llm.deadline import DeadlinePassed
from llm.errors import LLMError
from llm.models import Usage, hold_call, insert_call
from llm.providers import Endpoint

logger = logging.getLogger(__name__)

OK, CANCELLED, CRASHED = "ok", "cancelled", "crashed"
TABLE = Path(__file__).with_name("prices.json")

# How long it is recorded what was sent where. What calls cost stays.
SENT_FOR = timedelta(days=365)
# A month's calls are stored within so long after its end. Its totals are cached for a day.
LATE_FOR = timedelta(days=1)
KEPT_S = 24 * 3600
_TOTALS = "usage:%d"

_MILLION = Decimal(1_000_000)
# Providers date their models: gpt-4o-mini-2024-07-18, claude-sonnet-4-20250514.
_DATE_SUFFIX = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")

_CALLS = Counter("loci_model_calls", "Calls to models.", ["purpose", "outcome"])
_CALL_SECONDS = Histogram(
    "loci_model_call_seconds",
    "Durations of calls to models.",
    ["purpose"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60),
)

_noted: ContextVar[list[Usage] | None] = ContextVar("noted", default=None)


class Price(BaseModel):
    """The price of a million tokens in US dollars, as published on `noted_on`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0, default=Decimal(0))
    noted_on: date
    # The last day of a price that is known to end; afterwards it is unknown.
    until: date | None = None

    def of(self, tokens_in: int, tokens_out: int) -> Decimal:
        return (tokens_in * self.input + tokens_out * self.output) / _MILLION


class PriceTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: Literal["US dollars per million tokens"]
    models: dict[str, Price]

    def find(self, model: str, day: date) -> Price | None:
        """Look it up by name, then without its vendor (`openai/`), then without its date."""
        bare = model.rsplit("/", 1)[-1]
        for name in (model, bare, _DATE_SUFFIX.sub("", bare)):
            price = self.models.get(name)
            if price:
                return price if price.until is None or day <= price.until else None
        return None


@cache
def price_table() -> PriceTable:
    return PriceTable.model_validate_json(TABLE.read_bytes())


def cost_at(endpoint: Endpoint, tokens_in: int, tokens_out: int) -> Decimal | None:
    """The cost at the price that the owner named, or else the table's; None if it is unknown."""
    if endpoint.price is not None:
        per_input, per_output = endpoint.price
        return (tokens_in * per_input + tokens_out * per_output) / _MILLION
    if providers.is_self_hosted(endpoint.provider):
        return Decimal(0)
    return cost_of(endpoint.model, tokens_in, tokens_out)


def cost_of(model: str, tokens_in: int, tokens_out: int) -> Decimal | None:
    """The cost, or None if the table has no such model."""
    price = price_table().find(model, timezone.now().date())
    return price.of(tokens_in, tokens_out) if price else None


@dataclass
class Meter:
    """Measurements of a call, filled in while it runs."""

    tokens_in: int = 0
    tokens_out: int = 0
    # The charge that the provider reports; None to use the price table.
    cost_usd: Decimal | None = None
    outcome: str = OK
    duration_ms: float = 0.0
    sent_record: sent.SentRecord = field(default_factory=sent.SentRecord)


def record(
    *,
    purpose: str,
    provider: str,
    model: str,
    duration_ms: float,
    owner_id: int | None = None,
    tokens_in: int = 0,
    tokens_out: int = 0,
    cost_usd: Decimal | None = None,
    outcome: str = OK,
    sent_record: sent.SentRecord | None = None,
    waits_for_disk: bool = True,
) -> Usage | None:
    """Store one call. The cost defaults to the price table's; self-hosted models are free.

    Returns None and stores nothing if the account was deleted meanwhile.

    Args:
        waits_for_disk: If not, a power cut may lose the row, and it may be held back: see
            `llm.models`. An enclosing transaction decides for itself.
    """
    if cost_usd is None:
        cost_usd = (
            Decimal(0)
            if providers.is_self_hosted(provider)
            else cost_of(model, tokens_in, tokens_out)
        )
    sent_record = sent_record or sent.SentRecord()
    _CALLS.labels(purpose, outcome).inc()
    _CALL_SECONDS.labels(purpose).observe(duration_ms / 1000)
    usage = Usage(
        owner_id=owner_id,
        purpose=Usage.Purpose(purpose),
        provider=providers.shown(provider)[:200],
        model=model[:200],
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=cost_usd,
        duration_ms=round(duration_ms),
        outcome=outcome,
        host=sent_record.host if sent_record.requests else "",
        characters=sent_record.characters if sent_record.requests else 0,
        requests=sent_record.requests,
        references=list(sent_record.references) if sent_record.requests else [],
    )
    waits = not waits_for_disk and hold_call(usage)
    if not waits and not insert_call(usage, waits_for_disk=waits_for_disk):
        return None
    noted = _noted.get()
    if noted is not None:
        noted.append(usage)
    return usage


@contextmanager
def noted() -> Iterator[list[Usage]]:
    """Collect the calls stored within this block, in order."""
    calls: list[Usage] = []
    before = _noted.set(calls)
    try:
        yield calls
    finally:
        _noted.reset(before)


def forget_sent() -> int:
    """Forget what was sent where, and of what it was made, a year ago; returns how many calls."""
    old = Usage.objects.filter(requests__gt=0, created_at__lt=timezone.now() - SENT_FOR)
    return old.update(host="", characters=0, requests=0, references=[])


@contextmanager
def metered(
    *, purpose: str, provider: str, model: str, owner_id: int | None = None
) -> Iterator[Meter]:
    """Time the block and store one `Usage` row, whatever its outcome.

    A rolled-back transaction deletes the row: call models outside of one.
    """
    meter = Meter()
    try:
        with timed(meter):
            yield meter
    finally:
        keep(meter, purpose=purpose, provider=provider, model=model, owner_id=owner_id)


@contextmanager
def timed(meter: Meter) -> Iterator[None]:
    """Time the block and set the meter's outcome; nothing is stored."""
    started = time.perf_counter()
    try:
        yield
    except LLMError as error:
        meter.outcome = error.code
        raise
    except (GeneratorExit, DeadlinePassed):
        meter.outcome = CANCELLED
        raise
    except BaseException:
        meter.outcome = CRASHED
        raise
    finally:
        meter.duration_ms = (time.perf_counter() - started) * 1000


def keep(
    meter: Meter,
    *,
    purpose: str,
    provider: str,
    model: str,
    owner_id: int | None = None,
    waits_for_disk: bool = True,
) -> None:
    record(
        purpose=purpose,
        provider=provider,
        model=model,
        owner_id=owner_id,
        duration_ms=meter.duration_ms,
        tokens_in=meter.tokens_in,
        tokens_out=meter.tokens_out,
        cost_usd=meter.cost_usd,
        outcome=meter.outcome,
        sent_record=meter.sent_record,
        waits_for_disk=waits_for_disk,
    )


@dataclass(frozen=True, slots=True)
class Totals:
    """
    Attributes:
        failed: The number of failed calls, without those the user cancelled.
        cost_usd: The total of the calls with a known price.
        unpriced: The number of calls that used tokens at an unknown price.
    """

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: Decimal = Decimal(0)
    unpriced: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.calls + other.calls,
            self.failed + other.failed,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cost_usd + other.cost_usd,
            self.unpriced + other.unpriced,
        )

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def is_unknown(self) -> bool:
        """Whether the cost is meaningless: zero, but with unpriced calls."""
        return self.unpriced > 0 and not self.cost_usd


@dataclass(frozen=True, slots=True)
class MonthlyUsage:
    """The calls for one purpose in one month, given by its first day."""

    month: date
    purpose: Usage.Purpose
    totals: Totals


def by_month(owner_id: int, year: int) -> list[MonthlyUsage]:
    """Totals by month, then purpose, in the current time zone; none without calls.

    The totals of months that have ended are kept in the cache for a day.
    """
    ended = _months_ended(year)
    rows = _totals_of(owner_id, year, ended + 1, 12) if ended < 12 else []
    if ended:
        rows += _ended_totals(owner_id, year, ended)
    order = list(Usage.Purpose)
    found = (_monthly(year, row) for row in rows)
    return sorted(found, key=lambda row: (row.month, order.index(row.purpose)))


def _months_ended(year: int) -> int:
    """Of the year, from January; a month counts a while after its end, as rows may come late."""
    then = timezone.localtime(timezone.now() - LATE_FOR)
    return 12 if year < then.year else then.month - 1 if year == then.year else 0


def _ended_totals(owner_id: int, year: int, ended: int) -> list[dict[str, Any]]:
    """The totals of the first months, from the cache: no call is added to them, or changed.

    The cache has one entry for each owner, of today's sums by what was added up.
    """
    january = datetime(year, 1, 1, tzinfo=timezone.get_current_timezone())
    calls = Usage.objects.filter(owner_id=owner_id, created_at__gte=january)
    first = calls.order_by("created_at", "pk").values_list("uuid", flat=True).first()
    if first is None:
        return []
    # By the first call, too: a key of an account may come again, in a restored database.
    zone = timezone.get_current_timezone_name()
    today = f"{timezone.now():%Y-%m-%d} "
    name = f"{today}{first} {zone} {year} {ended}"
    kept: dict[str, list[dict[str, Any]]] = {}
    with suppress(redis.RedisError):  # Without it they are added up.
        kept = caches["default"].get(_TOTALS % owner_id, {})
    if name in kept:
        return [row | {"cost": Decimal(row["cost"])} for row in kept[name]]
    rows = _totals_of(owner_id, year, 1, ended)
    kept = {other: sums for other, sums in kept.items() if other.startswith(today)}
    kept[name] = [row | {"cost": str(row["cost"] or 0)} for row in rows]
    with suppress(redis.RedisError):
        caches["default"].set(_TOTALS % owner_id, kept, KEPT_S)
    if not calls.filter(uuid=first).exists():  # The account was closed meanwhile.
        forget_totals(owner_id)
    return rows


def forget_totals(owner_id: int) -> bool:
    """Delete what is cached of the owner's costs, once the rows are gone; False without Redis."""
    try:
        caches["default"].delete(_TOTALS % owner_id)
    except redis.RedisError as error:
        logger.warning("Cached costs remain, for up to a day: Redis is unavailable (%s).", error)
        return False
    return True


def _totals_of(owner_id: int, year: int, first: int, last: int) -> list[dict[str, Any]]:
    """Of the months from `first` to `last`, each with its number. One query."""
    zone = timezone.get_current_timezone()
    begins = [datetime(year, month, 1, tzinfo=zone) for month in range(1, 13)]
    begins.append(datetime(year + 1, 1, 1, tzinfo=zone))
    within = Usage.objects.filter(
        owner_id=owner_id, created_at__gte=begins[first - 1], created_at__lt=begins[last]
    )
    used = Q(tokens_in__gt=0) | Q(tokens_out__gt=0)
    # Comparing with twelve moments takes a fraction of the time of finding each call's month.
    number = Func(
        F("created_at"), Value(begins), function="width_bucket", output_field=IntegerField()
    )
    rows: Any = within.annotate(number=number).values("number", "purpose")
    return list(
        rows.annotate(
            calls=Count("pk"),
            failed=Count("pk", filter=~Q(outcome__in=[OK, CANCELLED])),
            all_in=Sum("tokens_in"),
            all_out=Sum("tokens_out"),
            cost=Sum("cost_usd"),
            unpriced=Count("pk", filter=used & Q(cost_usd=None)),
        )
    )


def _monthly(year: int, row: Mapping[str, Any]) -> MonthlyUsage:
    totals = Totals(
        calls=row["calls"],
        failed=row["failed"],
        tokens_in=row["all_in"],
        tokens_out=row["all_out"],
        cost_usd=row["cost"] or Decimal(0),
        unpriced=row["unpriced"],
    )
    return MonthlyUsage(date(year, row["number"], 1), Usage.Purpose(row["purpose"]), totals)


def first_call(owner_id: int) -> datetime | None:
    """The time of the user's first call in the current time zone, or None."""
    calls = Usage.objects.filter(owner_id=owner_id)
    first: datetime | None = calls.aggregate(first=Min("created_at"))["first"]
    return timezone.localtime(first) if first else None

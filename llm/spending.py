"""Reports of a user's model usage and costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Count, Min, Q, Sum
from django.db.models.functions import TruncMonth
from django.utils import timezone

from llm.models import Usage
from llm.usage import CANCELLED, OK


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
    """Totals by month, then purpose; none without calls.

    Months and the year are those of the current time zone. One query.
    """
    zone = timezone.get_current_timezone()
    within = Usage.objects.filter(
        owner_id=owner_id,
        created_at__gte=datetime(year, 1, 1, tzinfo=zone),
        created_at__lt=datetime(year + 1, 1, 1, tzinfo=zone),
    )
    used = Q(tokens_in__gt=0) | Q(tokens_out__gt=0)
    rows = (
        within.annotate(month=TruncMonth("created_at"))
        .values("month", "purpose")
        .annotate(
            calls=Count("pk"),
            failed=Count("pk", filter=~Q(outcome__in=[OK, CANCELLED])),
            all_in=Sum("tokens_in"),
            all_out=Sum("tokens_out"),
            cost=Sum("cost_usd"),
            unpriced=Count("pk", filter=used & Q(cost_usd=None)),
        )
    )
    found = [
        MonthlyUsage(
            month=row["month"].date(),
            purpose=Usage.Purpose(row["purpose"]),
            totals=Totals(
                calls=row["calls"],
                failed=row["failed"],
                tokens_in=row["all_in"],
                tokens_out=row["all_out"],
                cost_usd=row["cost"] or Decimal(0),
                unpriced=row["unpriced"],
            ),
        )
        for row in rows
    ]
    order = list(Usage.Purpose)
    return sorted(found, key=lambda row: (row.month, order.index(row.purpose)))


def first_call(owner_id: int) -> datetime | None:
    """The time of the user's first call in the current time zone, or None."""
    calls = Usage.objects.filter(owner_id=owner_id)
    first: datetime | None = calls.aggregate(first=Min("created_at"))["first"]
    return timezone.localtime(first) if first else None

"""The price of a call, from the table in prices.json."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field

TABLE = Path(__file__).with_name("prices.json")

_MILLION = Decimal(1_000_000)
# Providers date their models: gpt-4o-mini-2024-07-18, claude-sonnet-4-20250514.
_DATE_SUFFIX = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


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


def cost_usd(model: str, tokens_in: int, tokens_out: int) -> Decimal | None:
    """The cost, or None if the table has no such model."""
    price = price_table().find(model, timezone.now().date())
    return price.of(tokens_in, tokens_out) if price else None

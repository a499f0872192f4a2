"""What a dream may cost, what it would cost at most, and what it has cost so far."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pydantic import BaseModel

from llm import providers, usage
from llm.chat import Message
from llm.models import Usage
from llm.providers import Endpoint
from llm.tokens import count_tokens
from settings_app.models import MemorySettings

# An answer that does not fit is asked for a second time, with the first one before it.
MOST_CALLS = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one dream. Dollars count where the model's price is known, tokens always."""

    usd: Decimal
    tokens: int

    @classmethod
    def of(cls, chosen: MemorySettings) -> Limits:
        return cls(chosen.dream_limit_usd, chosen.dream_limit_tokens)


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Attributes:
        usd: None where the price is not known.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    usd: Decimal | None = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Cost) -> Cost:
        known = self.usd is not None and other.usd is not None
        return Cost(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            (self.usd or Decimal(0)) + (other.usd or Decimal(0)) if known else None,
        )


@dataclass(slots=True)
class Purse:
    """Keeps a dream within its limits: what would go beyond them at worst is not begun."""

    endpoint: Endpoint
    limits: Limits
    spent: Cost = field(default_factory=Cost)
    calls: int = 0

    def allows(self, cost: Cost) -> bool:
        after = self.spent + cost
        if after.tokens > self.limits.tokens:
            return False
        return after.usd is None or after.usd <= self.limits.usd

    def at_worst(self, messages: Sequence[Message], schema: type[BaseModel], answer: int) -> Cost:
        """What asking this costs, the second try included.

        Args:
            answer: The most tokens of one answer.
        """
        asked = tokens_of(messages, schema)
        return self.cost(MOST_CALLS * asked + answer, MOST_CALLS * answer)

    def cost(self, tokens_in: int, tokens_out: int) -> Cost:
        if providers.is_self_hosted(self.endpoint.provider):
            return Cost(tokens_in, tokens_out)
        usd = usage.cost_of(self.endpoint.model, tokens_in, tokens_out)
        return Cost(tokens_in, tokens_out, usd)

    def pay(self, calls: Iterable[Usage]) -> None:
        for call in calls:
            if call.purpose == Usage.Purpose.MEMORY_DREAM:
                self.spent += Cost(call.tokens_in, call.tokens_out, call.cost_usd)
                self.calls += 1


def tokens_of(messages: Sequence[Message], schema: type[BaseModel]) -> int:
    """About how many are sent, the form of the answer among them; rather too many."""
    form = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return count_tokens(form) + sum(count_tokens(message["content"]) for message in messages)

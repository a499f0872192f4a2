"""A dream's calls to a model: kept within the budget, and estimated in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel

from llm import sent, usage
from llm.chat import Message, schema_text
from llm.errors import LLMError
from llm.models import Usage
from llm.providers import Endpoint
from llm.tokens import count_tokens
from palace.knowledge.dreaming.dream_input import (
    MOST_FACTS,
    Directives,
    Feedback,
    Log,
    facts_to_look_at,
    feedback_of,
    log_of,
    read_directives,
)
from palace.knowledge.dreaming.model_findings import (
    Consolidation,
    ConsolidationAnswer,
    Preferences,
    PreferencesAnswer,
    consolidation_messages,
    preference_messages,
)
from palace.knowledge.dreaming.proposals import Finding
from palace.knowledge.facts.fact_extraction import ask
from palace.models import Drawer, Fact, Palace
from settings_app.models import MemorySettings, ModelUse, settings_of

# An invalid answer is requested a second time, with the first one in the prompt.
MOST_CALLS = 2
Answer = TypeVar("Answer", bound=BaseModel)
Shown = TypeVar("Shown")
# Tokens of an answer: a share of the input, as most facts do not change.
ANSWER_FOR_FORM = 1000
ANSWER_PER_FACT = 12
ANSWER_PER_FEEDBACK = 20
MOST_PREFERENCE_TOKENS = 2000
# Timeout factor relative to other calls: these are large, and nobody waits.
PATIENCE = 5
RETRIES = 1
TOO_DEAR = "The limit of what a dream may cost did not allow {what}. Raise it in the settings."
SHORTENED = "The limit of what a dream may cost left room for {count:,} of {whole:,} {what}."


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one dream. The limit in dollars applies if the model's price is known."""

    usd: Decimal
    tokens: int

    @classmethod
    def of(cls, chosen: MemorySettings) -> Limits:
        return cls(chosen.dream_limit_usd, chosen.dream_limit_tokens)


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Attributes:
        usd: None if the price is unknown.
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
    """Keep a dream within its limits: calls whose worst case exceeds them are not made."""

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
        """The cost of a call in the worst case, with the second try.

        Args:
            answer: Maximum tokens of one answer.
        """
        asked = tokens_of(messages, schema)
        return self.cost(MOST_CALLS * asked + answer, MOST_CALLS * answer)

    def cost(self, tokens_in: int, tokens_out: int) -> Cost:
        usd = usage.cost_at(self.endpoint, tokens_in, tokens_out)
        return Cost(tokens_in, tokens_out, usd)

    def pay(self, calls: Iterable[Usage]) -> None:
        for call in calls:
            if call.purpose == Usage.Purpose.MEMORY_DREAM:
                self.spent += Cost(call.tokens_in, call.tokens_out, call.cost_usd)
                self.calls += 1


def tokens_of(messages: Sequence[Message], schema: type[BaseModel]) -> int:
    """Estimate the tokens of a request, with the schema of the answer; errs on the high side."""
    form = count_tokens(schema_text(schema))
    return form + sum(count_tokens(message["content"]) for message in messages)


@dataclass(slots=True)
class ModelPasses:
    """The two passes with a model, each one call.

    Attributes:
        notes: What was shortened, left out or failed, in sentences.
    """

    palace: Palace
    endpoint: Endpoint
    purse: Purse
    directives: Directives
    notes: list[str] = field(default_factory=list)

    def consolidate(
        self, facts: Sequence[Fact], feedback: Sequence[Feedback]
    ) -> list[Finding] | None:
        """None if the model was not asked, or its answer is invalid."""
        shown = self._fitting(
            facts,
            "facts",
            ConsolidationAnswer,
            lambda part: self.consolidation_call(part, feedback),
        )
        if not shown:
            return None
        messages, most = self.consolidation_call(shown, feedback)
        facts_shown = sent.references("fact", [fact.pk for fact in shown])
        with sent.made_of([f"{sent.INSTRUCTIONS}:consolidation", *facts_shown]):
            answer = self._ask(messages, ConsolidationAnswer, most)
        if answer is None:
            return None
        consolidation = Consolidation(shown, feedback)
        found = consolidation.findings(answer)
        self.notes += consolidation.notes
        return found

    def infer(self, log: Log) -> tuple[list[Finding], bool]:
        """Findings, and whether the model was asked."""
        shown = self._fitting(
            log.messages[::-1], "messages", PreferencesAnswer, self.preference_call
        )
        if not shown:
            return [], False
        messages, most = self.preference_call(shown)
        drawers = sent.references("drawer", [drawer.pk for drawer in shown])
        with sent.made_of([f"{sent.INSTRUCTIONS}:preferences", *drawers]):
            answer = self._ask(messages, PreferencesAnswer, most)
        if answer is None:
            return [], True
        preferences = Preferences(shown[::-1])
        found = preferences.findings(answer)
        self.notes += preferences.notes
        return found, True

    def consolidation_call(
        self, facts: Sequence[Fact], feedback: Sequence[Feedback]
    ) -> tuple[list[Message], int]:
        """The messages about these facts, and the maximum tokens of the answer."""
        messages = consolidation_messages(self.directives.consolidation, facts, feedback)
        most = ANSWER_FOR_FORM + ANSWER_PER_FACT * len(facts) + ANSWER_PER_FEEDBACK * len(feedback)
        return messages, most

    def preference_call(self, latest_first: Sequence[Drawer]) -> tuple[list[Message], int]:
        """The messages about this log, and the maximum tokens of the answer."""
        messages = preference_messages(self.directives.preferences, latest_first[::-1])
        return messages, MOST_PREFERENCE_TOKENS

    def _fitting(
        self,
        things: Sequence[Shown],
        what: str,
        schema: type[BaseModel],
        put: Callable[[Sequence[Shown]], tuple[list[Message], int]],
    ) -> Sequence[Shown]:
        """As many of the first items as the budget allows in the worst case, or none."""
        count = len(things)
        while count:
            messages, most = put(things[:count])
            if self.purse.allows(self.purse.at_worst(messages, schema, most)):
                break
            count = count * 3 // 4
        if count < len(things):
            note = SHORTENED if count else TOO_DEAR
            self.notes.append(note.format(count=count, whole=len(things), what=what))
        return things[:count]

    def _ask(self, messages: Sequence[Message], schema: type[Answer], most: int) -> Answer | None:
        with usage.noted() as calls:
            try:
                return ask(
                    messages,
                    schema,
                    endpoint=self.endpoint,
                    owner_id=self.palace.owner_id,
                    purpose=Usage.Purpose.MEMORY_DREAM,
                    max_tokens=most,
                    timeout_s=settings.LLM_TIMEOUT_S * PATIENCE,
                    max_retries=min(RETRIES, settings.LLM_MAX_RETRIES),
                )
            except LLMError as error:
                self.notes.append(f"The model was of no help. {error}")
                return None
            finally:
                self.purse.pay(calls)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The input and cost of the next dream.

    Attributes:
        model: The model's name; empty where there is none, and local rules serve.
        likely: One call a pass, with half of the answer it may give.
        most: Each call made twice, with whole answers.
        notes: Why the model that was chosen cannot be asked.
    """

    model: str
    facts: int
    feedback: int
    messages: int
    likely: Cost
    most: Cost
    limits: Limits
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether everything fits within the limits."""
        within = self.most.usd is None or self.most.usd <= self.limits.usd
        return within and self.most.tokens <= self.limits.tokens


# The messages of a call, the most tokens of its answer, and the answer's schema.
_Call = tuple[list[Message], int, type[BaseModel]]


def _costs_of(calls: Sequence[_Call], purse: Purse) -> tuple[Cost, Cost]:
    """What the calls are likely to cost, and what they cost at worst."""
    none = purse.cost(0, 0)
    likely = (purse.cost(tokens_of(asked, schema), most // 2) for asked, most, schema in calls)
    worst = (purse.at_worst(asked, schema, most) for asked, most, schema in calls)
    return sum(likely, none), sum(worst, none)


def estimate(palace: Palace) -> Estimate:
    """Estimate the next dream, without calling a model.

    Raises:
        BadDirective: a file with instructions cannot be used.
    """
    chosen = settings_of(palace.owner_id)
    limits, named = Limits.of(chosen), chosen.chat_model(ModelUse.DREAMS)
    notes = (named.note,) if named.note else ()
    if named.endpoint is None:
        counted = Fact.objects.within(palace).active()[:MOST_FACTS].count()
        return Estimate("", counted, 0, 0, Cost(), Cost(), limits, notes)
    facts = facts_to_look_at(palace, MOST_FACTS)
    directives = read_directives()
    purse = Purse(named.endpoint, limits)
    passes = ModelPasses(palace, named.endpoint, purse, directives)
    feedback = feedback_of(palace, timezone.now())
    heard = log_of(palace).messages if chosen.dream_preferences else []
    calls: list[_Call] = []
    if facts:
        calls.append((*passes.consolidation_call(facts, feedback), ConsolidationAnswer))
    if heard:
        calls.append((*passes.preference_call(heard[::-1]), PreferencesAnswer))
    likely, worst = _costs_of(calls, purse)
    return Estimate(
        named.endpoint.model,
        len(facts),
        len(feedback),
        len(heard),
        _rounded(likely),
        _rounded(worst),
        limits,
        notes,
    )


def _rounded(cost: Cost) -> Cost:
    usd = None if cost.usd is None else round(Decimal(cost.usd), 6)
    return Cost(cost.tokens_in, cost.tokens_out, usd)

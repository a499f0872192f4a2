"""The calls of a dream: put together within what is left to spend, and estimated beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel

from llm import usage
from llm.chat import Message
from llm.errors import LLMError
from llm.models import Usage
from llm.providers import Endpoint
from palace.knowledge.dreaming.budget import Cost, Limits, Purse, tokens_of
from palace.knowledge.dreaming.consolidation import (
    Consolidation,
    ConsolidationAnswer,
    consolidation_messages,
)
from palace.knowledge.dreaming.directives import Directives, read_directives
from palace.knowledge.dreaming.findings import Finding
from palace.knowledge.dreaming.preferences import (
    Preferences,
    PreferencesAnswer,
    preference_messages,
)
from palace.knowledge.dreaming.scanning import (
    MOST_FACTS,
    Feedback,
    Log,
    facts_to_look_at,
    feedback_of,
    log_of,
)
from palace.knowledge.facts.model_calls import ask
from palace.models import Drawer, Fact, Palace
from settings_app.models import settings_of

Answer = TypeVar("Answer", bound=BaseModel)
Shown = TypeVar("Shown")

# Tokens of an answer: a share of what was shown, as most of it stays as it is.
ANSWER_FOR_FORM = 1000
ANSWER_PER_FACT = 12
ANSWER_PER_FEEDBACK = 20
MOST_PREFERENCE_TOKENS = 2000
# How much longer than other calls these may take: nobody waits, and they are large.
PATIENCE = 5
RETRIES = 1

TOO_DEAR = "The limit of what a dream may cost did not allow {what}. Raise it in the settings."
SHORTENED = "The limit of what a dream may cost left room for {count:,} of {whole:,} {what}."


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
        """None where the model was not asked, or gave no answer that makes sense."""
        shown = self._fitting(
            facts,
            "facts",
            ConsolidationAnswer,
            lambda part: self.consolidation_call(part, feedback),
        )
        if not shown:
            return None
        messages, most = self.consolidation_call(shown, feedback)
        answer = self._ask(messages, ConsolidationAnswer, most)
        if answer is None:
            return None
        consolidation = Consolidation(shown, feedback)
        found = consolidation.findings(answer)
        self.notes += consolidation.notes
        return found

    def infer(self, log: Log) -> tuple[list[Finding], bool]:
        """Findings, and whether the model was asked, whatever came of it."""
        shown = self._fitting(
            log.messages[::-1], "messages", PreferencesAnswer, self.preference_call
        )
        if not shown:
            return [], False
        messages, most = self.preference_call(shown)
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
        """What is asked about these facts, and the most tokens of the answer."""
        messages = consolidation_messages(self.directives.consolidation, facts, feedback)
        most = ANSWER_FOR_FORM + ANSWER_PER_FACT * len(facts) + ANSWER_PER_FEEDBACK * len(feedback)
        return messages, most

    def preference_call(self, latest_first: Sequence[Drawer]) -> tuple[list[Message], int]:
        """Likewise about these messages."""
        messages = preference_messages(self.directives.preferences, latest_first[::-1])
        return messages, MOST_PREFERENCE_TOKENS

    def _fitting(
        self,
        things: Sequence[Shown],
        what: str,
        schema: type[BaseModel],
        put: Callable[[Sequence[Shown]], tuple[list[Message], int]],
    ) -> Sequence[Shown]:
        """As many of the first ones as may be paid for at worst; none where not even a few may."""
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
    """What the next dream would look at and cost.

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
        """Whether nothing has to be left out to keep within the limits."""
        within = self.most.usd is None or self.most.usd <= self.limits.usd
        return within and self.most.tokens <= self.limits.tokens


def estimate(palace: Palace) -> Estimate:
    """Nothing is asked of anybody.

    Raises:
        BadDirective: a file with instructions cannot be used.
    """
    chosen = settings_of(palace.owner_id)
    limits, named = Limits.of(chosen), chosen.chat_model()
    facts = facts_to_look_at(palace, MOST_FACTS)
    feedback, log = feedback_of(palace, timezone.now()), log_of(palace)
    notes = (named.note,) if named.note else ()
    if named.endpoint is None:
        return Estimate("", len(facts), 0, 0, Cost(), Cost(), limits, notes)
    directives = read_directives()
    purse = Purse(named.endpoint, limits)
    passes = ModelPasses(palace, named.endpoint, purse, directives)
    calls: list[tuple[list[Message], int, type[BaseModel]]] = []
    if facts:
        calls.append((*passes.consolidation_call(facts, feedback), ConsolidationAnswer))
    heard = log.messages if chosen.dream_preferences else []
    if heard:
        calls.append((*passes.preference_call(heard[::-1]), PreferencesAnswer))
    none = purse.cost(0, 0)
    likely = sum(
        (purse.cost(tokens_of(asked, schema), most // 2) for asked, most, schema in calls), none
    )
    worst = sum((purse.at_worst(asked, schema, most) for asked, most, schema in calls), none)
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

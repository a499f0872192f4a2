"""Call a model for each question: metered, logged and resumable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from django.db.models import Count, Max, Q, Sum
from tqdm import tqdm

from bench.logs import BadRun, Log
from llm.errors import LLMError, ModelRefused
from llm.models import Usage
from llm.providers import Endpoint, deployment_endpoint
from llm.usage import OK

# After this many consecutive failures the model is assumed down.
MOST_IN_A_ROW = 3
NO_MODEL = (
    "This step asks a chat model, and none is set: set LOCI_LLM_PROVIDER, LOCI_LLM_MODEL and "
    "LOCI_LLM_API_KEY (docs/models.md says how), then run it again."
)


def endpoint(model: str | None) -> Endpoint:
    """The operator's model, or another one of the same provider.

    Raises:
        BadRun: no model is configured, or its settings are invalid.
    """
    try:
        found = deployment_endpoint()
    except ModelRefused as error:
        raise BadRun(str(error)) from None
    if found is None:
        raise BadRun(NO_MODEL)
    return found.with_model(model) if model else found


class Asked(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Asked)


def ask_each(
    items: Iterable[Item],
    ask: Callable[[Item], Mapping[str, Any]],
    *,
    step: str,
    log: Log,
    failed: Log,
    total: int,
) -> None:
    """Log the result of `ask` for each item; failed calls have a separate log.

    Raises:
        BadRun: several calls failed in a row.
    """
    in_a_row = 0
    for item in tqdm(items, total=total, desc=step, unit="question", disable=None):
        before = _last_call()
        try:
            line = ask(item)
        except LLMError as error:
            in_a_row += 1
            entry = {"step": step, "question_id": item.id, "error": error.code, "said": str(error)}
            failed.append({**entry, "usage": _calls_since(before)})
            if in_a_row == MOST_IN_A_ROW:
                raise BadRun(
                    f"{in_a_row} questions in a row failed. {error} The same command goes on with "
                    "what is missing."
                ) from None
            continue
        in_a_row = 0
        log.append({**line, "usage": _calls_since(before)})


def _last_call() -> int:
    return Usage.objects.aggregate(last=Max("pk"))["last"] or 0


def _calls_since(last: int) -> dict[str, Any]:
    """Usage of chat model calls since then, without embeddings."""
    calls = Usage.objects.filter(pk__gt=last).exclude(purpose=Usage.Purpose.MEMORY_EMBED)
    used = Q(tokens_in__gt=0) | Q(tokens_out__gt=0)
    found = calls.aggregate(
        calls=Count("pk"),
        failed=Count("pk", filter=~Q(outcome=OK)),
        all_in=Sum("tokens_in", default=0),
        all_out=Sum("tokens_out", default=0),
        cost=Sum("cost_usd", default=Decimal(0)),
        unpriced=Count("pk", filter=used & Q(cost_usd=None)),
    )
    return {
        "calls": found["calls"],
        "failed": found["failed"],
        "tokens_in": found["all_in"],
        "tokens_out": found["all_out"],
        "cost_usd": float(found["cost"]),
        "unpriced": found["unpriced"],
    }


def spent(*logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The total usage of the lines.

    `cost_usd` is that of the calls whose price is known; `unpriced` counts the others.
    """
    usages = [line["usage"] for lines in logs for line in lines]
    names = ("calls", "failed", "tokens_in", "tokens_out", "cost_usd", "unpriced")
    total = {name: sum(usage[name] for usage in usages) for name in names}
    return {**total, "cost_usd": round(total["cost_usd"], 6)}


def missing(wanted: Iterable[Item], done: Collection[str]) -> list[Item]:
    return [item for item in wanted if item.id not in done]

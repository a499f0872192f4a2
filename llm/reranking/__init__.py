"""A reranker of this server's own: a cross-encoder, which reads question and passage together.

None comes with Loci. LOCI_RERANKER_PATH names the folder of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db import transaction

from llm import providers, usage
from llm.commits import commit_without_waiting
from llm.models import Usage

__all__ = ["check", "deployment_reranker", "rate"]


def deployment_reranker() -> Path | None:
    """The folder of the operator's choice; None where there is none."""
    return Path(settings.RERANKER_PATH).expanduser() if settings.RERANKER_PATH else None


def check(folder: Path) -> None:
    """See whether the reranker can work, by letting it work once, on a pair as long as any.

    Raises:
        RerankerMisconfigured: it cannot; says what is wrong and what to do.
    """
    # ONNX Runtime is 45 MB that no process need carry before somebody wants an order.
    from llm.reranking.cross_encoder import CrossEncoder  # noqa: PLC0415

    CrossEncoder(folder).try_out()


def rate(
    question: str,
    passages: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    owner_id: int | None = None,
) -> list[float]:
    """How well each passage answers the question, higher is better; metered as one call.

    Scores compare with each other only. Call it outside of a transaction.

    Raises:
        RerankerUnavailable: it was not done in `timeout_s` seconds, or broke off.
        RerankerMisconfigured: it cannot be loaded, or does not give one score a passage.
    """
    from llm.reranking import cross_encoder  # noqa: PLC0415 - as above.

    meter = usage.Meter()
    try:
        with usage.timed(meter):
            rated = cross_encoder.loaded(folder).rate(question, passages, timeout_s=timeout_s)
            meter.tokens_in = rated.tokens
    finally:
        with transaction.atomic():
            commit_without_waiting()  # It was free.
            usage.keep(
                meter,
                purpose=Usage.Purpose.MEMORY_RERANK,
                provider=providers.LOCAL,
                model=folder.name,
                owner_id=owner_id,
            )
    return rated.scores

"""The local reranker: a cross-encoder, which reads question and passage together.

Loci comes without one. LOCI_RERANKER_PATH is the folder of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db import transaction

from llm import providers, usage
from llm.database_writes import commit_without_waiting
from llm.models import Usage

__all__ = ["check", "deployment_reranker", "rate"]


def deployment_reranker() -> Path | None:
    """The configured folder, or None."""
    return Path(settings.RERANKER_PATH).expanduser() if settings.RERANKER_PATH else None


def check(folder: Path) -> None:
    """Test the reranker on a pair of maximum length.

    Raises:
        RerankerMisconfigured: it does not work; the message says what to do.
    """
    # ONNX Runtime takes 45 MB: load it only when a reranker is used.
    from llm.cross_encoder import CrossEncoder  # noqa: PLC0415

    CrossEncoder(folder).try_out()


def rate(
    question: str,
    passages: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    owner_id: int | None = None,
) -> list[float]:
    """Score how well each passage answers the question, higher is better; metered as one call.

    Scores are comparable within one call only. Call it outside of a transaction.

    Raises:
        RerankerUnavailable: it took longer than `timeout_s` seconds, or failed.
        RerankerMisconfigured: it cannot be loaded, or does not return one score a passage.
    """
    from llm import cross_encoder  # noqa: PLC0415 - as above.

    meter = usage.Meter()
    try:
        with usage.timed(meter):
            rated = cross_encoder.loaded(folder).rate(question, passages, timeout_s=timeout_s)
            meter.tokens_in = rated.tokens
    finally:
        with transaction.atomic():
            commit_without_waiting()  # Losing the row of a free call does not matter.
            usage.keep(
                meter,
                purpose=Usage.Purpose.MEMORY_RERANK,
                provider=providers.LOCAL,
                model=folder.name,
                owner_id=owner_id,
            )
    return rated.scores

"""Vectors for passages that lack them: after an outage, or in the space of a new model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from django.db import models, transaction
from django.db.models import Exists, OuterRef
from pgvector import HalfVector

from llm.embedding import embed
from llm.errors import EmbedderUnavailable
from palace.indexing import passages
from palace.indexing.spaces import activate, model_of
from palace.models import Drawer, EmbeddingSpace, Palace, Passage


def fill_missing(*, limit: int = 256) -> int:
    """Embed passages that were left without a vector, in any palace. Returns how many it filled.

    Safe beside others doing the same and to be killed at any time.

    Raises:
        EmbedderUnavailable: the embedder is still down; nothing was changed.
    """
    pending = list(
        Passage.objects.filter(embedding=None, space__active=True)
        .select_related("space", "drawer", "palace")
        .order_by("palace_id", "drawer_id", "ordinal")[:limit]
    )
    for _, group in groupby(pending, key=lambda passage: passage.palace_id):
        _fill(list(group))
    return len(pending)


def _fill(passages: list[Passage]) -> None:
    texts = [passage.drawer.text[passage.start : passage.end] for passage in passages]
    space, palace = passages[0].space, passages[0].palace
    vectors = embed(texts, model_of(space), owner_id=palace.owner_id)
    with transaction.atomic():
        for passage, vector in zip(passages, vectors, strict=True):
            Passage.objects.filter(pk=passage.pk, embedding=None).update(
                embedding=HalfVector(vector)
            )


def build_space(space: EmbeddingSpace, *, batch: int = 128) -> Iterator[int]:
    """Give every mined drawer its passages in `space`, beside the space recall is using.

    Yields the number of drawers done after each batch. May be killed and called again: what is
    there stays. Drawers mined meanwhile are taken along.

    Raises:
        EmbedderUnavailable: what was done so far stays.
    """
    while drawers := list(_lacking(space).select_related("palace")[:batch]):
        for palace, group in groupby(drawers, key=lambda drawer: drawer.palace):
            _build(palace, space, list(group))
        yield len(drawers)


def switch_to(space: EmbeddingSpace) -> None:
    """Make `space` the one recall searches, and drop the passages of the others."""
    activate(space)
    Passage.objects.exclude(space=space).delete()


def lacking(space: EmbeddingSpace) -> int:
    """How many mined drawers have no passage in this space yet."""
    return _lacking(space).count()


def _lacking(space: EmbeddingSpace) -> models.QuerySet[Drawer]:
    present = Passage.objects.filter(palace=OuterRef("palace"), space=space, drawer=OuterRef("pk"))
    return Drawer.objects.filter(~Exists(present), mined_at__isnull=False).order_by("palace", "pk")


def _build(palace: Palace, space: EmbeddingSpace, drawers: Sequence[Drawer]) -> None:
    texts = [drawer.text for drawer in drawers]
    embedded = passages.Embedded(palace, space, texts)
    if embedded.vectors is None:
        raise EmbedderUnavailable(embedded.note)
    with transaction.atomic():
        # Of two builders side by side, the second finds the passages and leaves them.
        held = Drawer.objects.select_for_update().filter(pk__in=[d.pk for d in drawers])
        lacking = set(_lacking(space).filter(pk__in=held).values_list("pk", flat=True))
        passages.store(palace, [d.pk for d in drawers], embedded, only=lacking)

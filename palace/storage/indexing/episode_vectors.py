"""Episode vectors: embedded summaries in the active space, searched by meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import numpy as np
from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from palace.models import EmbeddingSpace, Episode, EpisodeQuerySet, EpisodeVector, Palace
from palace.storage.indexing.fact_vectors import Vector, embed_texts, forget_texts

__all__ = [
    "embed_texts",
    "fill_batch",
    "first_lacking",
    "forget_texts",
    "nearest",
    "replace",
]


def replace(palace: Palace, space: EmbeddingSpace, vectors: Mapping[int, Vector | None]) -> None:
    """Replace the vectors of episodes, by key, in all spaces.

    The caller holds the palace's lock and passes vectors of the current summaries. Episodes
    without a vector are backfilled later.
    """
    EpisodeVector.objects.filter(palace=palace, episode__in=list(vectors)).delete()
    embedded = {key: vector for key, vector in vectors.items() if vector is not None}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO palace_episodevector (palace_id, space_id, episode_id, embedding)
            SELECT %s, %s, episode, vector::halfvec
            FROM unnest(%s::bigint[], %s::text[]) AS new (episode, vector)
            """,
            [
                palace.pk,
                space.pk,
                list(embedded),
                [_literal(vector) for vector in embedded.values()],
            ],
        )


def first_lacking(space: EmbeddingSpace, limit: int) -> list[Episode]:
    """The first episodes of any palace without a vector in this space."""
    present = EpisodeVector.objects.filter(
        palace=OuterRef("palace"), space=space, episode=OuterRef("pk")
    )
    lacking = Episode.objects.filter(~Exists(present)).select_related("palace")
    return list(lacking.order_by("palace_id", "pk")[:limit])


def fill_batch(space: EmbeddingSpace, *, limit: int = 128) -> int:
    """Embed some of the missing vectors in this space; returns how many were written."""
    filled = 0
    for _, group in groupby(first_lacking(space, limit), key=lambda episode: episode.palace_id):
        filled += _fill(space, list(group))
    return filled


def _fill(space: EmbeddingSpace, episodes: Sequence[Episode]) -> int:
    """Write vectors only for summaries that are unchanged; changed ones are filled later."""
    palace = episodes[0].palace
    vectors = embed_texts(palace, space, [episode.summary for episode in episodes])
    embedded = [
        (episode.pk, episode.summary, _literal(vector))
        for episode, vector in zip(episodes, vectors, strict=True)
        if vector is not None
    ]
    if not embedded:
        return 0
    with transaction.atomic():
        if not palace.lock_if_there():
            return len(embedded)
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO palace_episodevector (palace_id, space_id, episode_id, embedding)
                SELECT e.palace_id, %s, e.id, new.vector::halfvec
                FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS new (id, summary, vector)
                JOIN palace_episode e ON e.palace_id = %s AND e.id = new.id
                    AND e.summary = new.summary
                ON CONFLICT (palace_id, space_id, episode_id) DO NOTHING
                """,
                [space.pk, *map(list, zip(*embedded, strict=True)), palace.pk],
            )
    return len(embedded)


def nearest(
    palaces: Collection[Palace],
    space: EmbeddingSpace,
    vector: Vector,
    among: EpisodeQuerySet,
    *,
    limit: int,
) -> list[tuple[Episode, float]]:
    """The palaces' episodes with the closest summaries, best first, each with its cosine."""
    among = among.filter(palace__in=palaces)
    rows = (
        EpisodeVector.objects.filter(
            palace__in=palaces, space=space, episode__in=among.order_by().values("pk")
        )
        .annotate(closeness=MaxInnerProduct("embedding", HalfVector(vector)))
        .order_by("closeness", "episode_id")
        .values_list("episode_id", "closeness")[:limit]
    )
    cosines = {key: -closeness for key, closeness in rows}
    found = among.select_related("palace").in_bulk(list(cosines))
    return [(found[key], cosine) for key, cosine in cosines.items() if key in found]


def _literal(vector: Vector) -> str:
    return HalfVector(np.asarray(vector, dtype=np.float32)).to_text()

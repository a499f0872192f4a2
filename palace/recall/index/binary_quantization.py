"""Binary quantization: preselects passages close to a question by one bit per dimension.

The Hamming distance of two vectors' sign bits grows with their angle (Charikar: Similarity
Estimation Techniques from Rounding Algorithms, 2002). Codes take a thirty-second of the memory of
vectors; if they do not fit either, the database compares its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import fetch_rows
from palace.models.packed import unpack
from palace.recall.index.palace_index import BinaryCodes, PalaceIndex
from palace.recall.raw_sql import NO_KEYS, array_literal, decode_array, isin_sorted, union
from palace.storage.indexing.postings import EVERY

Ids = npt.NDArray[np.int64]

# How many of the closest by Hamming distance are compared exactly. With 37,700 real passages they
# contain .9993 of the ten closest by cosine.
CLOSE_BY_BITS = 1000
# Sample size: estimates the mean within 3 % of the spread, and the spread within 2 %.
SAMPLE = 1000

_TRASH = "(SELECT id FROM palace_drawer WHERE palace_id = %s AND trashed_at IS NOT NULL)"
# An index-only scan of the primary key serves this query.
_BY_BITS = (
    "SELECT substring(array_send(ARRAY(SELECT drawer_id FROM palace_passage"
    " WHERE palace_id = %s AND space_id = %s AND bits IS NOT NULL AND {condition}"
    " ORDER BY bits <~> binary_quantize(%s::halfvec) LIMIT %s)) FROM 21)"
)


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A question's vectors, for comparing further drawers of a large palace.

    Attributes:
        vector: As a Postgres literal.
        unadapted: The unadapted question as a literal; empty if it is the same.
        codes: Binary codes of `vector`.
        index: The palace index with binary codes; None if they do not fit in memory.
    """

    palace_id: int
    space_id: int
    vector: str
    unadapted: str
    codes: BinaryCodes
    index: PalaceIndex | None


def closest_by_bits(
    vector_query: VectorQuery,
    *,
    without_trash: bool,
    period: tuple[datetime, datetime] | None = None,
    only: Ids | None = None,
    without: Ids = NO_KEYS,
) -> Ids:
    """Drawers of the passages that are closest by Hamming distance.

    Args:
        without_trash: Whether to filter trashed drawers.
        period: Only drawers said from the first moment on and before the second.
        only: Keys of the drawers to choose from, ascending; None: all.
        without: Keys of drawers to leave out, ascending.
    """
    if vector_query.index:
        return _closest_in_memory(vector_query.index, vector_query.codes, period, only, without)
    condition: str = "true"
    parameters: list[object] = []
    if period:
        condition = (
            "drawer_id IN (SELECT id FROM palace_drawer WHERE palace_id = %s"
            " AND said_at >= %s AND said_at < %s AND trashed_at IS NULL)"
        )
        parameters = [vector_query.palace_id, *period]
    elif without_trash:
        condition, parameters = f"drawer_id NOT IN {_TRASH}", [vector_query.palace_id]
    if only is not None:
        condition += " AND drawer_id = ANY(%s::bigint[])"
        parameters.append(array_literal(only))
    if len(without):
        condition += " AND drawer_id <> ALL(%s::bigint[])"
        parameters.append(array_literal(without))
    [(keys,)] = fetch_rows(
        _BY_BITS.format(condition=condition),
        [
            vector_query.palace_id,
            vector_query.space_id,
            *parameters,
            vector_query.vector,
            CLOSE_BY_BITS,
        ],
    )
    return union(decode_array(keys, "i8"))


def _closest_in_memory(
    index: PalaceIndex,
    codes: BinaryCodes,
    period: tuple[datetime, datetime] | None,
    only: Ids | None,
    without: Ids,
) -> Ids:
    owners, kept = index.arrays.passages >> 16, index.arrays.codes
    if period:
        start, end = (moment.timestamp() for moment in period)
        within = isin_sorted(owners, index.said_within(start, end))
        owners, kept = owners[within], kept[within]
    if only is not None:
        within = isin_sorted(owners, only)
        owners, kept = owners[within], kept[within]
    if len(without):
        within = ~isin_sorted(owners, without)
        owners, kept = owners[within], kept[within]
    if len(owners) > CLOSE_BY_BITS:
        differing = np.zeros(len(owners), dtype=np.uint16)
        for word, of_question in zip(kept.T, codes, strict=True):
            differing += np.bitwise_count(word ^ of_question)
        owners = owners[np.argpartition(differing, CLOSE_BY_BITS)[:CLOSE_BY_BITS]]
    return union(owners)


def sample(vector_query: VectorQuery, number: int, trash: Ids) -> Ids:
    """Keys of about SAMPLE evenly spaced drawers; the same until the palace changes.

    Args:
        number: Approximate number of drawers.
    """
    if vector_query.index:
        drawers = vector_query.index.passage_offsets.drawers
        return drawers[:: max(len(drawers) // SAMPLE, 1)]
    [(keys,)] = fetch_rows(
        "SELECT string_agg(substring(drawers FROM 1 + 8 * place FOR 8), ''::bytea)"
        " FROM palace_posting, generate_series(0, number - 1, %s) place"
        " WHERE palace_id = %s AND term = %s",
        [max(number // SAMPLE, 1), vector_query.palace_id, EVERY],
    )
    found = np.sort(unpack(keys, "i8"))
    found = found[:: max(len(found) // SAMPLE, 1)]
    return np.asarray(found[~isin_sorted(found, trash)])

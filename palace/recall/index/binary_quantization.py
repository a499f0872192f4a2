"""Binary quantization: passages that may be close to a question, by one bit a dimension.

The bits that differ between two vectors grow with the angle between them (Charikar: Similarity
Estimation Techniques from Rounding Algorithms, 2002). They take a thirty-second of the room, so
that many more fit the memory; where they do not, the database compares its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from palace.models.packed import unpack
from palace.recall.index.palace_index import BinaryCodes, PalaceIndex
from palace.recall.raw_sql import among, distinct, fetch_rows, numbers
from palace.storage.indexing.postings import EVERY

Ids = npt.NDArray[np.int64]

# How many of the closest by bits are compared exactly: of 37,700 real passages, .9993 of the ten
# that are truly closest are among so many.
CLOSE_BY_BITS = 1000
# From so many drawers the mean is known to 3 % of the spread, the spread itself to 2 %.
SAMPLE = 1000

_TRASH = "(SELECT id FROM palace_drawer WHERE palace_id = %s AND trashed_at IS NOT NULL)"
# The index of the primary key holds all that this needs, in the order of the drawers.
_BY_BITS = (
    "SELECT substring(array_send(ARRAY(SELECT drawer_id FROM palace_passage"
    " WHERE palace_id = %s AND space_id = %s AND bits IS NOT NULL AND {among}"
    " ORDER BY bits <~> binary_quantize(%s::halfvec) LIMIT %s)) FROM 21)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where to look for the cosines of more drawers.

    Attributes:
        vector: As the database reads it.
        as_asked: Likewise the question's own; empty if it is the same.
        codes: Of `vector`.
        index: The palace with its binary codes; None where it is too large for the memory.
    """

    palace_id: int
    space_id: int
    vector: str
    as_asked: str
    codes: BinaryCodes
    index: PalaceIndex | None


def closest_by_bits(
    asked: Asked, *, without_trash: bool, period: tuple[datetime, datetime] | None = None
) -> Ids:
    """Drawers of the passages that are closest as far as their bits tell.

    Args:
        without_trash: Whether any may be in the trash.
        period: Only those said from the first moment on and before the second.
    """
    if asked.index:
        return _closest_in_memory(asked.index, asked.codes, period)
    which, parameters = "true", []
    if period:
        which = (
            "drawer_id IN (SELECT id FROM palace_drawer WHERE palace_id = %s"
            " AND said_at >= %s AND said_at < %s AND trashed_at IS NULL)"
        )
        parameters = [asked.palace_id, *period]
    elif without_trash:
        which, parameters = f"drawer_id NOT IN {_TRASH}", [asked.palace_id]
    [(keys,)] = fetch_rows(
        _BY_BITS.format(among=which),
        [asked.palace_id, asked.space_id, *parameters, asked.vector, CLOSE_BY_BITS],
    )
    return distinct(numbers(keys, "i8"))


def _closest_in_memory(
    index: PalaceIndex, codes: BinaryCodes, period: tuple[datetime, datetime] | None
) -> Ids:
    owners, kept = index.arrays.passages >> 16, index.arrays.codes
    if period:
        start, end = (moment.timestamp() for moment in period)
        within = among(owners, index.said_within(start, end))
        owners, kept = owners[within], kept[within]
    if len(owners) > CLOSE_BY_BITS:
        differing = np.zeros(len(owners), dtype=np.uint16)
        for word, of_question in zip(kept.T, codes, strict=True):
            differing += np.bitwise_count(word ^ of_question)
        owners = owners[np.argpartition(differing, CLOSE_BY_BITS)[:CLOSE_BY_BITS]]
    return distinct(owners)


def sample(asked: Asked, number: int, trash: Ids) -> Ids:
    """Keys of about SAMPLE drawers from all over the palace, the same until it changes.

    Args:
        number: How many drawers it has, about.
    """
    if asked.index:
        drawers = asked.index.stretches.drawers
        return drawers[:: max(len(drawers) // SAMPLE, 1)]
    [(keys,)] = fetch_rows(
        "SELECT string_agg(substring(drawers FROM 1 + 8 * place FOR 8), ''::bytea)"
        " FROM palace_posting, generate_series(0, number - 1, %s) place"
        " WHERE palace_id = %s AND term = %s",
        [max(number // SAMPLE, 1), asked.palace_id, EVERY],
    )
    found = np.sort(unpack(keys, "i8"))
    found = found[:: max(len(found) // SAMPLE, 1)]
    return np.asarray(found[~among(found, trash)])

"""The postings say what a rebuild from the drawers would say.

Both sides are summed up as a fingerprint for each term, so that a large palace is compared in the
memory that its vocabulary takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from language.analyzer import analyze
from palace.audit.finding import Finding, finding
from palace.models import Drawer, Palace, Posting
from palace.storage.indexing.postings import EVERY, MAX_COUNT

BATCH = 500

Numbers = npt.NDArray[np.uint64]
# By term: how many entries it has, and the sum of their hashes modulo 2^64, whatever their order.
Fingerprints = dict[str, tuple[int, int]]

# SplitMix64, by Guy Steele, Doug Lea and Christine Flood (2014).
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MASK = 2**64 - 1


def postings_equal_a_rebuild(palace: Palace) -> Finding:
    there, rebuilt = _stored(palace), _rebuilt(palace)
    wrong = sorted(
        term for term in there.keys() | rebuilt.keys() if there.get(term) != rebuilt.get(term)
    )
    return finding(
        "postings",
        "The postings of each term are those of a rebuild.",
        [term or "(every drawer)" for term in wrong],
    )


def lengths_are_right(palace: Palace) -> Finding:
    wrong = [
        drawer.uuid for drawer in _mined(palace) if drawer.terms != analyze(drawer.text).total()
    ]
    return finding("drawer-terms", "A drawer's length in terms is that of its text.", wrong)


def _mined(palace: Palace) -> Iterator[Drawer]:
    mined = Drawer.objects.within(palace).exclude(mined_at=None).order_by("pk")
    return mined.only("pk", "uuid", "text", "terms").iterator(chunk_size=BATCH)


def _rebuilt(palace: Palace) -> Fingerprints:
    sums: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for drawer in _mined(palace):
        terms = analyze(drawer.text)
        counts = {EVERY: 1, **terms}
        values = _hashes(
            np.full(len(counts), drawer.pk, np.uint64),
            np.minimum(list(counts.values()), MAX_COUNT).astype(np.uint64),
            np.full(len(counts), min(terms.total(), MAX_COUNT), np.uint64),
        )
        for term, value in zip(counts, values.tolist(), strict=True):
            number, total = sums[term]
            sums[term] = number + 1, (total + value) & _MASK
    return dict(sums)


def _stored(palace: Palace) -> Fingerprints:
    sums: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    segments = Posting.objects.filter(palace=palace).order_by()
    for term, *columns in segments.values_list("term", "drawers", "counts", "lengths").iterator():
        values = _hashes(*(column.astype(np.uint64) for column in columns))
        number, total = sums[term]
        sums[term] = number + len(values), (total + int(values.sum())) & _MASK
    return dict(sums)


def _hashes(drawers: Numbers, counts: Numbers, lengths: Numbers) -> Numbers:
    """One number for each entry; entries that differ have different ones, but for 1 in 2^64."""
    mixed = _mix(drawers)
    return _mix(mixed ^ (counts << np.uint64(16)) ^ lengths)


def _mix(numbers: Numbers) -> Numbers:
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)


CHECKS = (postings_equal_a_rebuild, lengths_are_right)

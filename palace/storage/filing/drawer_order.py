"""Order: where new messages of a conversation go among those already here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def merged(kept: Sequence[str], told: Sequence[str]) -> list[str]:
    """All ids in the order of the conversation, those in `kept` as they are.

    A new one comes right after the one it follows in `told`, those that open `told` before the
    one they lead to; where `told` knows none of the kept ones, it continues them.
    """
    known = set(kept)
    leading: list[str] = []
    following: defaultdict[str, list[str]] = defaultdict(list)
    last = first = None
    for name in told:
        if name in known:
            last = name
            first = first or name
        elif last is None:
            leading.append(name)
        else:
            following[last].append(name)
    order: list[str] = []
    for name in kept:
        if name == first:
            order += leading
        order += [name, *following[name]]
    return order if first is not None else [*order, *leading]

"""Opening a palace: from then on the database shows no row of any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from isolation import reach
from isolation.reach import PALACE, Reach
from palace.models.palace import Palace

P = ParamSpec("P")
R = TypeVar("R")


def reach_of(palace: Palace) -> Reach:
    return Reach(PALACE, palace=palace.pk, owner=palace.owner_id)


@contextmanager
def open_palace(palace: Palace) -> Iterator[None]:
    """What runs inside the block sees one palace, and its owner's account."""
    with reach.within(reach_of(palace)):
        yield


def in_its_palace(
    function: Callable[Concatenate[Palace, P], R],
) -> Callable[Concatenate[Palace, P], R]:
    """A function of a palace, which is open while it runs."""

    @wraps(function)
    def opened(palace: Palace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with open_palace(palace):
            return function(palace, *args, **kwargs)

    return opened

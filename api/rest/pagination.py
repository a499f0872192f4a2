"""Pages of lists, by cursors that stay valid while rows are added and deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from api.rest.problems import Problem
from settings_app.secrets import Unreadable, seal, unseal

BAD_CURSOR = "This cursor is not of this list. Start without one, and follow `next`."
CURSOR, LIMIT = "cursor", "limit"
# The default page size, and the largest.
USUAL, MOST = 50, 200
_SIZES = {str(size) for size in range(1, MOST + 1)}


class Page:
    """One page of `rows`, in the order of these fields, which together no two rows share.

    A cursor has the fields of the row before or after the page, for one list only. It is encrypted,
    because it contains keys. Rows added or deleted meanwhile do not shift others.

    Attributes:
        rows: Those on the page.
    """

    def __init__(self, rows: QuerySet[Any], request: Request, ordering: Sequence[str]) -> None:
        self._request, self._ordering = request, ordering
        self._size = _size(request)
        self._backwards, position = self._cursor()
        if position:
            rows = rows.filter(_after(self._in_direction(), position))
        read = list(rows.order_by(*self._in_direction())[: self._size + 1])
        self._more = len(read) > self._size
        self._begun = bool(position)
        self.rows = read[: self._size]
        if self._backwards:
            self.rows.reverse()

    def links(self) -> dict[str, str | None]:
        """The URLs of the `next` and `previous` pages, or None."""
        before, after = (self._more, True) if self._backwards else (self._begun, self._more)
        if not self.rows:
            before = after = False
        return {
            "next": self._link(self.rows[-1], backwards=False) if after else None,
            "previous": self._link(self.rows[0], backwards=True) if before else None,
        }

    def _link(self, row: Model, *, backwards: bool) -> str:
        position = [getattr(row, field.lstrip("-")) for field in self._ordering]
        written = json.dumps([*self._list(), backwards, position], default=str)
        return replace_query_param(self._request.build_absolute_uri(), CURSOR, seal(written))

    def _cursor(self) -> tuple[bool, list[Any]]:
        """The cursor's direction and start; empty is the beginning of the list."""
        sealed = self._request.query_params.get(CURSOR)
        if sealed is None:
            return False, []
        try:
            *of_list, backwards, position = json.loads(unseal(sealed))
        except (Unreadable, ValueError):
            of_list = []
        if of_list != self._list():
            raise Problem(400, "bad_cursor", BAD_CURSOR)
        return backwards, position

    def _list(self) -> list[Any]:
        return [self._request.path, *self._ordering]

    def _in_direction(self) -> list[str]:
        turned = [field[1:] if field[0] == "-" else f"-{field}" for field in self._ordering]
        return turned if self._backwards else list(self._ordering)


def _after(ordering: Sequence[str], position: Sequence[Any]) -> Q:
    """The condition for rows after the one with these fields, in this order."""
    fields = [field.lstrip("-") for field in ordering]
    same = [Q(**{field: value}) for field, value in zip(fields, position, strict=True)]
    beyond = [
        Q(**{f"{field.lstrip('-')}__{'lt' if field[0] == '-' else 'gt'}": value})
        for field, value in zip(ordering, position, strict=True)
    ]
    steps = [reduce(and_, same[:place], one) for place, one in enumerate(beyond)]
    # Redundant condition on the first field, so that an index finds the start.
    first = f"{fields[0]}__{'lte' if ordering[0][0] == '-' else 'gte'}"
    return Q(**{first: position[0]}) & reduce(or_, steps)


def _size(request: Request) -> int:
    params = request.query_params.get(LIMIT, str(USUAL))
    if params in _SIZES:
        return int(params)
    said = f"limit is a whole number from 1 to {MOST}."
    raise Problem(400, "bad_input", said, errors={LIMIT: [said]})

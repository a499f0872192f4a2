"""The palace API: places, drawers, trash, traces, activity, the owner's settings.

Here is the base of its views: the palace of a request, its rows, and pages of rows. The cursors of
pages stay valid while rows are added and deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from api.rest import etags
from api.rest.base import ApiView
from api.rest.palace import shapes
from api.rest.problems import Problem, not_found
from palace.curation.trash import Batch
from palace.models import InPalace, InPalaceQuerySet, Palace
from settings_app.secrets import Unreadable, seal, unseal

Row = TypeVar("Row", bound=InPalace)
ALL_PALACES = (
    "This key is for one palace only, and this is about all of its owner's. Use a key that is not "
    "bound to one."
)
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


class PalaceApiView(ApiView):
    """The palace is that of `?user_id=`, or the key's own."""

    def requested_palace(self) -> Palace | None:
        """The requested palace, if it exists."""
        return self.palace(self.request.query_params.get("user_id"))

    def entered(self) -> Palace:
        """The requested palace.

        Raises:
            Problem: 404, that person has no palace.
        """
        palace = self.requested_palace()
        if palace is None:
            raise not_found()
        return palace

    def row(self, rows: InPalaceQuerySet[Row], uuid: UUID) -> Row:
        """The one of these rows that is of the palace and has this id.

        Raises:
            Problem: 404, there is none.
        """
        return self.one_of(rows.within(self.entered()), uuid)

    def one_of(self, rows: QuerySet[Row], uuid: UUID) -> Row:
        """`row`, of rows that are of the palace already."""
        found = rows.filter(uuid=uuid).first()
        if found is None:
            raise not_found()
        return found

    def page(
        self,
        rows: QuerySet[Any],
        ordering: Sequence[str],
        show: Callable[[list[Any]], list[dict[str, Any]]],
    ) -> Response:
        """A page of the rows, as `show` shows those that are on it."""
        page = Page(rows, self.request, ordering)
        return Response({**page.links(), "results": show(page.rows)})

    def changed(self, row: dict[str, Any]) -> Response:
        """What a change made of a row; its id alone for a key that only writes."""
        if not self.key.may("read"):
            return Response({"id": row["id"]})
        return etags.answer(self.request, row)

    def trashed(self, batch: Batch) -> Response:
        """What went to the trash; for a key that only writes, without the texts of facts."""
        shown = shapes.batch(batch)
        return Response(shown if self.key.may("read") else {**shown, "facts": []})

    def require_all_palaces(self) -> None:
        """
        Raises:
            Problem: 403, the key is bound to one palace.
        """
        if self.key.subject is not None:
            raise Problem(403, "wrong_palace", ALL_PALACES)

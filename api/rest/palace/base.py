"""The base of the palace views: the palace of a request, its rows, and pages of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework.response import Response

from api.rest import etags
from api.rest.base import ApiView
from api.rest.pagination import Page
from api.rest.palace import shapes
from api.rest.problems import Problem, not_found
from palace.curation.trash import Batch
from palace.models import InPalace, InPalaceQuerySet, Palace

Row = TypeVar("Row", bound=InPalace)
ALL_PALACES = (
    "This key is for one palace only, and this is about all of its owner's. Use a key that is not "
    "bound to one."
)


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

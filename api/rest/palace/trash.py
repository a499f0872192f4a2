"""The trash: list, restore, empty."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from kombu.exceptions import OperationalError
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.palace import PalaceApiView, shapes
from api.rest.palace.places import chosen
from api.rest.palace.shapes import MOST_DRAWERS, DrawerShown, Shape
from api.rest.problems import Problem, not_found
from palace.curation import deletion
from palace.curation.trash import (
    batch_key,
    batch_of,
    drawers_in,
    moment_of,
    restore,
    up_to,
    was_batch,
)
from palace.mining import tasks
from palace.models import Drawer, DrawerQuerySet, Palace

MOST = 2**53
TAG = ["trash"]
ONE = [shapes.UserRequest]
LAST_TRASHED_FIRST = ["-trashed_at", "conversation", "position", "pk"]
NO_QUEUE = (
    "Part of it is permanently deleted. The queue (Redis) does not respond; repeat the request "
    "to continue."
)


class TrashedShown(DrawerShown):
    trashed_at = serializers.DateTimeField()
    batch = serializers.IntegerField(help_text="Shared by drawers trashed together.")
    days_left = serializers.IntegerField(help_text="Days until it is permanently deleted.")


class Restore(Shape):
    batch = serializers.IntegerField(required=False, min_value=0, max_value=MOST)
    drawers = serializers.ListField(
        child=serializers.UUIDField(), required=False, min_length=1, max_length=MOST_DRAWERS
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("Name either a batch or drawers to restore.")
        return attrs


class Restored(Shape):
    drawers = serializers.IntegerField(help_text="The number of restored drawers.")


class Empty(Shape):
    up_to = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        help_text="A batch; later ones stay in the trash.",
    )


class Emptied(Shape):
    deleted = serializers.IntegerField()
    left = serializers.IntegerField(help_text="The number that is being deleted in the background.")


class TrashView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=[shapes.PageRequest],
        responses={200: shapes.page_of(TrashedShown)},
    )
    def get(self, request: Request) -> Response:
        """List the trash, most recent first. It is permanently deleted after 30 days.

        Drawers that were trashed together share a `batch`.
        """
        palace = self.requested_palace()
        rows = Drawer.objects.within(palace) if palace else Drawer.objects.none()
        return self.page(rows.trashed().with_place(), LAST_TRASHED_FIRST, shapes.trashed)


class TrashedView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"DELETE": "admin"}

    @extend_schema(tags=TAG, parameters=ONE, responses={200: TrashedShown})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a drawer in the trash."""
        return Response(shapes.trashed_row(self._trashed(uuid)))

    @extend_schema(tags=TAG, parameters=ONE, request=None, responses={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Permanently delete a drawer in the trash, with every trace of its text."""
        drawer = self._trashed(uuid)
        purge = deletion.Purge(drawer.palace)
        purge.run(drawers_in(drawer))
        if not purge.count:  # Restored or purged meanwhile.
            raise not_found()
        return Response(status=204)

    def _trashed(self, uuid: UUID) -> Drawer:
        return self.row(Drawer.objects.trashed().with_place().select_related("palace"), uuid)


class RestoreView(PalaceApiView):
    @extend_schema(
        tags=TAG,
        parameters=ONE,
        request=Restore,
        responses={200: Restored},
    )
    def post(self, request: Request) -> Response:
        """Restore drawers from the trash: some, or a whole batch.

        Facts that had no other source become active again, unless others replaced them.
        """
        params = self.read(Restore)
        palace = self.entered()
        with transaction.atomic():
            palace.lock()
            if "batch" in params:
                drawers = _batch(palace, params["batch"])
            else:
                drawers = chosen(palace, Drawer.objects.all(), params["drawers"])
            restored = restore(palace, drawers)
        tasks.enqueue_mining(restored.unmined)
        return Response({"drawers": restored.drawers})


def _batch(palace: Palace, key: int) -> DrawerQuerySet:
    """The drawers of a batch that are still in the trash.

    Raises:
        Problem: 404, there never was such a batch.
    """
    at = moment_of(key)
    if at is None or not was_batch(palace, at):
        raise not_found()
    return batch_of(palace, at)


class EmptyView(PalaceApiView):
    scopes: ClassVar[dict[str, str]] = {"POST": "admin"}

    @extend_schema(
        tags=TAG,
        parameters=ONE,
        request=Empty,
        responses={200: Emptied, 202: Emptied},
    )
    def post(self, request: Request) -> Response:
        """Permanently delete the trash, or the part up to a batch.

        Longer work continues in the background: 202, and `left` says how
        much that is.
        """
        params = self.read(Empty)
        palace = self.entered()
        key = params["up_to"] if "up_to" in params else _latest(palace)
        if key is None:
            return Response({"deleted": 0, "left": 0})
        _batch(palace, key)
        drawers = up_to(key).within(palace)
        run = deletion.Purge(palace)
        if run.run(drawers, seconds=deletion.PURGE_IN_REQUEST_S):
            return Response({"deleted": run.count, "left": 0})
        try:
            deletion.empty_trash.delay(palace.pk, key)
        except OperationalError:
            later = {"Retry-After": "5"}
            raise Problem(503, "queue_unavailable", NO_QUEUE, headers=later) from None
        return Response({"deleted": run.count, "left": drawers.count()}, 202)


def _latest(palace: Palace) -> int | None:
    trashed = Drawer.objects.within(palace).trashed().order_by("-trashed_at")
    at = trashed.values_list("trashed_at", flat=True).first()
    return batch_key(at) if at else None

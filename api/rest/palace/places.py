"""Wings, rooms and closets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags
from api.rest.palace import shapes
from api.rest.palace.base import PalaceApiView
from api.rest.problems import Problem, not_found
from palace.curation.trash import move_to_trash
from palace.curation.wings import NameTaken, change_wing, merge_wings
from palace.models import Closet, Room, Wing
from palace.queries.places import closets_of, rooms_of, wing_counts, with_closet_counts

TAG = ["places"]
ONE = [shapes.UserRequest]
PAGE = [shapes.PageRequest]


class PlaceView(PalaceApiView):
    """Base of the views of one place. Places without drawers outside the trash are not found."""

    def wing(self, uuid: UUID) -> tuple[Wing, dict[str, Any]]:
        """The wing and its representation."""
        wing = self.row(Wing.objects.select_related("palace"), uuid)
        (row,) = shapes.wings(wing.palace, [wing])
        if not row["drawers"]:
            raise not_found()
        return wing, row

    def room(self, uuid: UUID) -> tuple[Room, dict[str, Any]]:
        room = self.row(Room.objects.select_related("palace", "wing"), uuid)
        rooms = with_closet_counts(rooms_of(room.wing)).select_related("wing")
        counted = rooms.filter(pk=room.pk).first()
        if counted is None:
            raise not_found()
        return room, shapes.rooms([counted])[0]

    def closet(self, uuid: UUID) -> dict[str, Any]:
        closet = self.row(Closet.objects.select_related("room__wing"), uuid)
        counted = closets_of(closet.room).select_related("room__wing").filter(pk=closet.pk).first()
        if counted is None:
            raise not_found()
        return shapes.closets([counted])[0]


class WingsView(PalaceApiView):
    @extend_schema(tags=TAG, parameters=PAGE, responses={200: shapes.page_of(shapes.WingShown)})
    def get(self, request: Request) -> Response:
        """List the wings that are not empty, by number."""
        palace = self.requested_palace()
        if palace is None:
            return self.page(Wing.objects.none(), ["number"], list)
        rows = Wing.objects.within(palace).filter(pk__in=list(wing_counts(palace)))
        return self.page(rows, ["number"], lambda wings: shapes.wings(palace, wings))


class WingView(PlaceView):
    @extend_schema(tags=TAG, parameters=ONE, responses={200: shapes.WingShown})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a wing with its names."""
        return etags.answer(request, self.wing(uuid)[1])

    @extend_schema(
        tags=TAG,
        parameters=ONE,
        request=shapes.WingChange,
        responses={200: shapes.WingShown},
    )
    def patch(self, request: Request, uuid: UUID) -> Response:
        """Change a wing's name, kind or aliases.

        The former name becomes an alias. A name of another wing is refused with 409. A key
        without `read` gets the `id` alone.
        """
        params = self.read(shapes.WingChange)
        with transaction.atomic():
            wing, before = self._locked_wing(uuid)
            try:
                change_wing(
                    wing,
                    name=params.get("name", wing.name),
                    kind=params.get("kind", wing.kind),
                    aliases=params.get("aliases"),
                )
            except NameTaken as taken:
                raise Problem(409, taken.code, str(taken)) from None
            after = self.wing(uuid)[1] if params else before
        return self.changed(after)

    @extend_schema(tags=TAG, parameters=ONE, request=None, responses={200: shapes.Batch})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Move all drawers of a wing to the trash, for 30 days."""
        with transaction.atomic():
            wing, _ = self._locked_wing(uuid)
            return self.trashed(move_to_trash(wing))

    def _locked_wing(self, uuid: UUID) -> tuple[Wing, dict[str, Any]]:
        """The wing and its representation, locked until the transaction ends."""
        self.entered().lock()
        wing, row = self.wing(uuid)
        etags.check(self.request, row)
        return wing, row


class WingMergeView(PlaceView):
    @extend_schema(
        tags=TAG, parameters=ONE, request=shapes.Into, responses={200: shapes.WingMerged}
    )
    def post(self, request: Request, uuid: UUID) -> Response:
        """Merge a wing into another, with its rooms and names.

        Pointers still lead to their drawers: rooms keep their numbers. Where both wings have a
        room of one conversation, the drawers of this one are renumbered. A key without `read`
        gets of the wing the `id` alone.
        """
        into = self.read(shapes.Into)["into"]
        with transaction.atomic():
            self.entered().lock()
            wing, other = self.wing(uuid)[0], self.wing(into)[0]
            merged = merge_wings(wing, other)
            now = self.changed(self.wing(into)[1]).data
        return Response({"wing": now, "rooms": merged.rooms, "drawers": merged.drawers})


class WingRoomsView(PlaceView):
    @extend_schema(tags=TAG, parameters=PAGE, responses={200: shapes.page_of(shapes.RoomShown)})
    def get(self, request: Request, uuid: UUID) -> Response:
        """List a wing's rooms, newest first."""
        rooms = with_closet_counts(rooms_of(self.wing(uuid)[0])).select_related("wing")
        return self.page(rooms, ["-started_at", "-number"], shapes.rooms)


class RoomView(PlaceView):
    @extend_schema(tags=TAG, parameters=ONE, responses={200: shapes.RoomShown})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a room: a conversation, or the part of it in this wing."""
        return etags.answer(request, self.room(uuid)[1])

    @extend_schema(tags=TAG, parameters=ONE, request=None, responses={200: shapes.Batch})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Move all drawers of a room to the trash, for 30 days."""
        with transaction.atomic():
            self.entered().lock()
            room, row = self.room(uuid)
            etags.check(request, row)
            return self.trashed(move_to_trash(room))


class RoomClosetsView(PlaceView):
    @extend_schema(tags=TAG, parameters=PAGE, responses={200: shapes.page_of(shapes.ClosetShown)})
    def get(self, request: Request, uuid: UUID) -> Response:
        """List a room's topics in order."""
        closets = closets_of(self.room(uuid)[0]).select_related("room__wing")
        return self.page(closets, ["pk"], shapes.closets)


class ClosetView(PlaceView):
    @extend_schema(tags=TAG, parameters=ONE, responses={200: shapes.ClosetShown})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a topic of a room."""
        return Response(self.closet(uuid))

    @extend_schema(tags=TAG, parameters=ONE, request=None, responses={200: shapes.Batch})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Move all drawers of a topic to the trash, for 30 days."""
        with transaction.atomic():
            self.entered().lock()
            self.closet(uuid)
            closet = self.row(Closet.objects.select_related("palace", "room__wing"), uuid)
            return self.trashed(move_to_trash(closet))

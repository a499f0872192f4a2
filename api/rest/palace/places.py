"""Wings, rooms, closets and drawers: read and list them, and move drawers and rooms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags
from api.rest.palace import PalaceApiView, shapes
from api.rest.problems import Problem, not_found
from palace.curation.refiling import move_drawers, move_into, move_room
from palace.curation.trash import move_to_trash, trash_drawers
from palace.curation.wings import NameTaken, change_wing, merge_wings, wing_called
from palace.models import Closet, Drawer, DrawerQuerySet, Palace, Pointer, Room, Wing
from palace.queries.places import closets_of, find_by_pointer, rooms_with_closets, wing_counts

TAG = ["places"]
ONE = [shapes.UserRequest]
PAGE = [shapes.PageRequest]
DRAWERS_TAG = ["drawers"]
# Ties in time are ordered by position in the conversation, later first.
NEWEST_FIRST = ["-said_at", "-position", "-pk"]
IN_ORDER = ["position", "pk"]
FILTERS = {
    "wing": "room__wing__uuid",
    "room": "room__uuid",
    "closet": "closet__uuid",
    "said_after": "said_at__gte",
    "said_before": "said_at__lt",
}


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
        rooms = rooms_with_closets(room.wing).select_related("wing")
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
        rooms = rooms_with_closets(self.wing(uuid)[0]).select_related("wing")
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


def chosen(palace: Palace, drawers: DrawerQuerySet, ids: list[UUID]) -> DrawerQuerySet:
    """Select the drawers with these ids.

    Raises:
        Problem: 404, one of them is missing; the caller must do nothing.
    """
    found = drawers.within(palace).filter(uuid__in=ids)
    here = set(found.values_list("uuid", flat=True))
    if missing := [str(each) for each in dict.fromkeys(ids) if each not in here]:
        said = f"{len(missing)} of these drawers were not found; nothing was done."
        raise Problem(404, "not_found", said, errors={"drawers": missing})
    return found


class DrawersView(PalaceApiView):
    @extend_schema(
        tags=DRAWERS_TAG,
        parameters=[shapes.DrawersRequest],
        responses={200: shapes.page_of(shapes.DrawerShown)},
    )
    def get(self, request: Request) -> Response:
        """List drawers, newest first, optionally of a place or a period."""
        params = self.read_query(shapes.DrawersRequest)
        palace = self.requested_palace()
        if palace is None:
            return self.page(Drawer.objects.none(), NEWEST_FIRST, list)
        wanted = {FILTERS[name]: value for name, value in params.items() if name in FILTERS}
        rows = Drawer.objects.within(palace).kept().filter(**_in_palace(palace, wanted))
        return self.page(rows.with_place(), NEWEST_FIRST, shapes.drawers)


def _in_palace(palace: Palace, wanted: dict[str, Any]) -> dict[str, Any]:
    """Add the palace to each joined table's condition: every index starts with it."""
    tables = {name.split("__uuid")[0] for name in wanted if name.endswith("__uuid")}
    return {**wanted, **{f"{table}__palace": palace for table in tables}}


class RoomDrawersView(PalaceApiView):
    @extend_schema(
        tags=DRAWERS_TAG,
        parameters=[shapes.PageRequest],
        responses={200: shapes.page_of(shapes.DrawerShown)},
    )
    def get(self, request: Request, uuid: UUID) -> Response:
        """List a room's drawers in the order they were said."""
        room = self.row(Room.objects.all(), uuid)
        kept = Drawer.objects.filter(palace=room.palace_id, room=room).kept()
        if not kept.exists():
            raise not_found()
        return self.page(kept.with_place(), IN_ORDER, shapes.drawers)


class DrawerView(PalaceApiView):
    @extend_schema(tags=DRAWERS_TAG, parameters=ONE, responses={200: shapes.DrawerWhole})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a drawer: its text, place, and the facts it supports."""
        return etags.answer(request, shapes.drawer_whole(self._kept(uuid)))

    @extend_schema(tags=DRAWERS_TAG, parameters=ONE, request=None, responses={200: shapes.Batch})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Move a drawer to the trash, where it stays for 30 days."""
        with transaction.atomic():
            self.entered().lock()
            drawer = self._kept(uuid)
            etags.check(request, shapes.drawer_whole(drawer))
            return self.trashed(move_to_trash(drawer))

    def _kept(self, uuid: UUID) -> Drawer:
        return self.row(Drawer.objects.kept().with_place().select_related("palace"), uuid)


class PointerView(PalaceApiView):
    @extend_schema(
        tags=DRAWERS_TAG, parameters=[shapes.PointerRequest], responses={200: shapes.DrawerWhole}
    )
    def get(self, request: Request) -> Response:
        """Get the drawer at a pointer."""
        wanted = Pointer.parse(self.read_query(shapes.PointerRequest)["pointer"])
        palace = self.entered()
        found = find_by_pointer(palace, wanted)
        if found is None:
            raise not_found()
        drawers = Drawer.objects.within(palace).with_place()
        whole = drawers.select_related("palace").get(pk=found.pk)
        return etags.answer(request, shapes.drawer_whole(whole))


class DrawersTrashView(PalaceApiView):
    @extend_schema(
        tags=DRAWERS_TAG, parameters=ONE, request=shapes.Drawers, responses={200: shapes.Batch}
    )
    def post(self, request: Request) -> Response:
        """Move up to 1,000 drawers to the trash together; none if one is missing.

        Drawers already in the trash keep their batch.
        """
        ids = self.read(shapes.Drawers)["drawers"]
        palace = self.entered()
        with transaction.atomic():
            palace.lock()
            going = chosen(palace, Drawer.objects.all(), ids)
            return self.trashed(trash_drawers(palace, going))


class MoveView(PlaceView):
    def target(self, palace: Palace, params: Mapping[str, Any]) -> Wing:
        """The requested wing, by id or name. Call it with the palace locked."""
        if "wing_name" in params:
            return wing_called(palace, params["wing_name"])
        return self.wing(params["wing"])[0]


class DrawersMoveView(MoveView):
    @extend_schema(
        tags=["drawers"],
        parameters=[shapes.UserRequest],
        request=shapes.Move,
        responses={200: shapes.MovedDrawers},
    )
    def post(self, request: Request) -> Response:
        """Move drawers to a wing, or to a room of their conversation; none if one is missing.

        In a wing each conversation has a room of its own, which is made if it is missing. A
        drawer that moves with its whole room keeps its numbers, so its pointer still leads to it.
        One that leaves others behind is found by a new pointer, and the former one leads nowhere.
        A wing that holds nothing any more is removed.
        """
        params = self.read(shapes.Move)
        palace = self.entered()
        with transaction.atomic():
            palace.lock()
            drawers = chosen(palace, Drawer.objects.kept(), params["drawers"])
            before = {each.pk: each.pointer for each in drawers.with_place()}
            if "room" in params:
                move_into(palace, drawers, self.room(params["room"])[0])
            else:
                move_drawers(palace, drawers, self.target(palace, params))
            after = {each.uuid: each for each in drawers.with_place()}
        moved = [after[uuid] for uuid in dict.fromkeys(params["drawers"])]
        return Response({"drawers": [_moved(each, before[each.pk]) for each in moved]})


def _moved(drawer: Drawer, before: Pointer) -> dict[str, Any]:
    return {
        "id": drawer.uuid,
        "pointer": str(drawer.pointer),
        "former_pointer": str(before),
        "room": drawer.room.uuid,
        "wing": drawer.room.wing.uuid,
    }


class RoomMoveView(MoveView):
    @extend_schema(
        tags=["places"],
        parameters=[shapes.UserRequest],
        request=shapes.ToWing,
        responses={200: shapes.RoomShown},
    )
    def post(self, request: Request, uuid: UUID) -> Response:
        """Move a room to another wing. It keeps its number, so pointers still lead to its drawers.

        Where that wing has a room of the same conversation it becomes part of that one, which is
        what is answered, and its drawers are renumbered. A key without `read` gets the `id` alone.
        """
        params = self.read(shapes.ToWing)
        palace = self.entered()
        with transaction.atomic():
            palace.lock()
            room, row = self.room(uuid)
            etags.check(request, row)
            moved = move_room(room, self.target(palace, params))
            now = self.room(moved.uuid)[1]
        return self.changed(now)

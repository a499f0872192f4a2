"""Refiling: move drawers and rooms to another place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import etags
from api.rest.palace import shapes
from api.rest.palace.drawers import chosen
from api.rest.palace.places import PlaceView
from palace.curation.refiling import move_drawers, move_into, move_room
from palace.curation.wings import wing_called
from palace.models import Drawer, Palace, Pointer, Wing


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
        what is answered, and its drawers are renumbered.
        """
        params = self.read(shapes.ToWing)
        palace = self.entered()
        with transaction.atomic():
            palace.lock()
            room, row = self.room(uuid)
            etags.check(request, row)
            moved = move_room(room, self.target(palace, params))
            now = self.room(moved.uuid)[1]
        return etags.answer(request, now)

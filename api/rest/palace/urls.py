"""URLs of the palace API, below /v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from api.rest.palace import choices, drawers, owner, places, record, refiling, trash

urlpatterns: list[URLPattern] = [
    path("wings/", places.WingsView.as_view(), name="wings"),
    path("wings/<uuid:uuid>/", places.WingView.as_view(), name="wing"),
    path("wings/<uuid:uuid>/merge/", places.WingMergeView.as_view(), name="wing_merge"),
    path("wings/<uuid:uuid>/rooms/", places.WingRoomsView.as_view(), name="wing_rooms"),
    path("rooms/<uuid:uuid>/", places.RoomView.as_view(), name="room"),
    path("rooms/<uuid:uuid>/closets/", places.RoomClosetsView.as_view(), name="room_closets"),
    path("rooms/<uuid:uuid>/drawers/", drawers.RoomDrawersView.as_view(), name="room_drawers"),
    path("rooms/<uuid:uuid>/move/", refiling.RoomMoveView.as_view(), name="room_move"),
    path("closets/<uuid:uuid>/", places.ClosetView.as_view(), name="closet"),
    path("drawers/", drawers.DrawersView.as_view(), name="drawers"),
    path("drawers/by-pointer/", drawers.PointerView.as_view(), name="by_pointer"),
    path("drawers/move/", refiling.DrawersMoveView.as_view(), name="drawers_move"),
    path("drawers/trash/", drawers.DrawersTrashView.as_view(), name="drawers_trash"),
    path("drawers/<uuid:uuid>/", drawers.DrawerView.as_view(), name="drawer"),
    path("trash/", trash.TrashView.as_view(), name="trash"),
    path("trash/restore/", trash.RestoreView.as_view(), name="trash_restore"),
    path("trash/empty/", trash.EmptyView.as_view(), name="trash_empty"),
    path("trash/<uuid:uuid>/", trash.TrashedView.as_view(), name="trashed"),
    path("recollections/", record.RecollectionsView.as_view(), name="recollections"),
    path("recollections/<uuid:uuid>/", record.RecollectionView.as_view(), name="recollection"),
    path("activity/", record.ActivityView.as_view(), name="activity"),
    path("usage/", owner.UsageView.as_view(), name="usage"),
    path("settings/", choices.SettingsView.as_view(), name="settings"),
    path("palaces/", owner.PalacesView.as_view(), name="palaces"),
]

"""The palace's addresses."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from palace.views import drawers, health, memory, places

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.health, name="health"),
    path("memory/", memory.memory, name="memory"),
    path("memory/wing/<uuid:uuid>/", places.wing_detail, name="wing_detail"),
    path("memory/room/<uuid:uuid>/", places.room_detail, name="room_detail"),
    path("memory/closet/<uuid:uuid>/", places.closet_detail, name="closet_detail"),
    path("memory/drawer/<uuid:uuid>/", drawers.drawer_detail, name="drawer_detail"),
    path("memory/pointer/", drawers.pointer, name="pointer"),
    path("memory/d/<path:text>", drawers.pointer, name="pointer_path"),
]

"""The palace's addresses."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from palace.views import drawers, health, imports, memory, places

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.health, name="health"),
    path("memory/", memory.memory, name="memory"),
    path("memory/wing/<uuid:uuid>/", places.wing_detail, name="wing_detail"),
    path("memory/room/<uuid:uuid>/", places.room_detail, name="room_detail"),
    path("memory/closet/<uuid:uuid>/", places.closet_detail, name="closet_detail"),
    path("memory/drawer/<uuid:uuid>/", drawers.drawer_detail, name="drawer_detail"),
    path("memory/import/", imports.imports, name="imports"),
    path("memory/import/<uuid:uuid>/", imports.import_detail, name="import_detail"),
    path("memory/import/<uuid:uuid>/start/", imports.import_start, name="import_start"),
    path("memory/import/<uuid:uuid>/pause/", imports.import_pause, name="import_pause"),
    path("memory/import/<uuid:uuid>/discard/", imports.import_discard, name="import_discard"),
    path("memory/pointer/", drawers.pointer, name="pointer"),
    path("memory/d/<path:text>", drawers.pointer, name="pointer_path"),
]

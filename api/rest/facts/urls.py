"""URLs of the fact API."""

from __future__ import annotations

from django.urls import path

from api.rest.facts.graph import EntitiesView, RelationsView, TimelineView
from api.rest.facts.memories import (
    HistoryView,
    MemoriesView,
    MemoryView,
    ResetView,
    SearchMemoriesView,
)

urlpatterns = [
    path("v1/memories/", MemoriesView.as_view(), name="memories"),
    path("v1/memories/search/", SearchMemoriesView.as_view(), name="search_memories"),
    path("v1/memories/<str:memory_id>/", MemoryView.as_view(), name="memory"),
    path("v1/memories/<str:memory_id>/history/", HistoryView.as_view(), name="history"),
    path("v1/reset/", ResetView.as_view(), name="reset"),
    path("v1/entities/", EntitiesView.as_view(), name="entities"),
    path("v1/entities/<id:name>/relations/", RelationsView.as_view(), name="relations"),
    path("v1/entities/<id:name>/timeline/", TimelineView.as_view(), name="timeline"),
]

"""Addresses that only mem0's client has; those it shares with ours are in `api.rest.urls`."""

from __future__ import annotations

from django.urls import URLPattern, path

from api.mem0 import views

app_name = "mem0"
urlpatterns: list[URLPattern] = [
    path("v1/ping/", views.PingView.as_view(), name="ping"),
    path("v1/batch/", views.BatchView.as_view(), name="batch"),
    path("v2/memories/", views.ListView.as_view(), name="memories_v2"),
    path("v2/memories/search/", views.SearchView.as_view(), name="search_v2"),
    path("v2/entities/<str:kind>/<id:name>/", views.EntityView.as_view(), name="entity"),
    path("v3/memories/", views.ListView.as_view(), name="memories_v3"),
    path("v3/memories/add/", views.AddView.as_view(), name="add"),
    path("v3/memories/search/", views.SearchView.as_view(), name="search_v3"),
]

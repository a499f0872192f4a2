"""URLs of the REST API."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularJSONAPIView

from api.rest import webhooks
from api.rest.exports import ExportView
from api.rest.memory_service import views as memory_service
from api.rest.pages import api_reference

app_name = "api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("api/docs/", api_reference, name="reference"),
    path("v1/export", ExportView.as_view(), name="export"),
    path("v1/", include("api.rest.palace.urls")),
    path("v1/webhooks/", webhooks.WebhooksView.as_view(), name="webhooks"),
    path("v1/webhooks/<uuid:uuid>/", webhooks.WebhookView.as_view(), name="webhook"),
    path("v1/webhooks/<uuid:uuid>/test/", webhooks.WebhookTestView.as_view(), name="webhook_test"),
    path(
        "v1/webhooks/<uuid:uuid>/deliveries/",
        webhooks.DeliveriesView.as_view(),
        name="webhook_deliveries",
    ),
    path("turns", memory_service.TurnsView.as_view(), name="turns"),
    path("recall", memory_service.RecallView.as_view(), name="recall"),
    path("search", memory_service.SearchView.as_view(), name="search"),
    path(
        "users/<id:user_id>/memories",
        memory_service.UserMemoriesView.as_view(),
        name="user_memories",
    ),
    path("users/<id:user_id>", memory_service.UserView.as_view(), name="user"),
    path("sessions/<id:session_id>", memory_service.SessionView.as_view(), name="session"),
    path("", include("api.rest.facts.urls")),
    path("", include("api.rest.working_memory.urls")),
]

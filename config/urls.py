"""All URLs."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config.metrics import metrics

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="chat"), name="home"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("settings_app.urls")),
    path("", include("api.urls")),
    path("", include("palace.views.urls")),
    path("", include("chat.urls")),
]

handler400 = "config.middleware.bad_request"
handler403 = "config.middleware.not_allowed"
handler404 = "config.middleware.not_found"
handler500 = "config.middleware.broken"

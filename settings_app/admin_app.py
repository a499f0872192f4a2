"""Django's admin, with our site in place of its own. A module of its own: an app has one config."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig as DjangosAdminConfig


class AdminConfig(DjangosAdminConfig):
    default_site = "settings_app.admin_site.Site"

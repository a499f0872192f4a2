"""App configurations: accounts and settings, and the admin with our own site."""

from __future__ import annotations

import logging
import re

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps

# The loggers that write requested addresses: the server's access log and Django's own.
LOGGERS_OF_ADDRESSES = ("uvicorn.access", "django.request", "django.server")
_TOKEN = re.compile(r"(/sign-in/once/)[^/\s\"?]+")


class SettingsAppConfig(AppConfig):
    name = "settings_app"
    default = True

    def ready(self) -> None:
        # On the loggers, not the handlers: the server brings handlers of its own.
        for name in LOGGERS_OF_ADDRESSES:
            logging.getLogger(name).addFilter(HideTokens())


class AdminConfig(admin_apps.AdminConfig):
    default = False
    default_site = "settings_app.admin_site.Site"


def without_tokens(text: str) -> str:
    return _TOKEN.sub(r"\1(hidden)", text)


class HideTokens(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = without_tokens(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(
                without_tokens(part) if isinstance(part, str) else part for part in record.args
            )
        return True

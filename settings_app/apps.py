"""App configurations: accounts and settings, and the admin with our own site."""

from __future__ import annotations

import logging
import re

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps

# The loggers that write requested addresses: the server's access log and Django's own.
LOGGERS_OF_ADDRESSES = ("uvicorn.access", "django.request", "django.server")
_TOKEN = re.compile(r"(/sign-in/once/)[^/\s\"?]+")
# The query of an address has the words people search for.
_QUERY = re.compile(r"(/[^\s\"?]*\?)[^\s\"]+")
_HIDDEN = r"\1(hidden)"


class SettingsAppConfig(AppConfig):
    name = "settings_app"
    default = True

    def ready(self) -> None:
        # On the loggers, not on handlers: the server adds handlers of its own.
        for name in LOGGERS_OF_ADDRESSES:
            logging.getLogger(name).addFilter(HideSecrets())


class AdminConfig(admin_apps.AdminConfig):
    default = False
    default_site = "settings_app.admin_site.Site"


def without_secrets(text: str) -> str:
    return _QUERY.sub(_HIDDEN, _TOKEN.sub(_HIDDEN, text))


class HideSecrets(logging.Filter):
    """Remove tokens and search words in addresses from log lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = without_secrets(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(
                without_secrets(part) if isinstance(part, str) else part for part in record.args
            )
        return True

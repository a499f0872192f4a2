"""A user's account and choices."""

from __future__ import annotations

import logging

from django.apps import AppConfig

from settings_app.logs import LOGGERS_OF_ADDRESSES, HideTokens


class SettingsAppConfig(AppConfig):
    name = "settings_app"

    def ready(self) -> None:
        # On the loggers, not the handlers: the server brings handlers of its own.
        for name in LOGGERS_OF_ADDRESSES:
            logging.getLogger(name).addFilter(HideTokens())

"""A one-time link signs its bearer in, so its token must not reach a log."""

from __future__ import annotations

import logging
import re

# The loggers that write requested addresses: the server's access log and Django's own.
LOGGERS_OF_ADDRESSES = ("uvicorn.access", "django.request", "django.server")

_TOKEN = re.compile(r"(/sign-in/once/)[^/\s\"?]+")


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

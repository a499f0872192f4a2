"""What a process of its own needs to work on the test's database and folders."""

from __future__ import annotations

import os
from urllib.parse import quote

from django.conf import settings
from django.db import connection


def environment():
    database = connection.settings_dict
    host = quote(str(settings.EMBEDDED.sockets), safe="")
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://{database['USER']}@{host}/{database['NAME']}",
        "REDIS_URL": settings.REDIS_URL,
        "LOCI_SECRET_KEY": "only for this test",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }

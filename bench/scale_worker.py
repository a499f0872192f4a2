"""How a process that only asks gets ready; it must not import models before it is."""

from __future__ import annotations

import django
from django.db import connection

from isolation import row_access


def start(database: str, options: str) -> None:
    """
    Args:
        options: Of the database connection: they name the schema.
    """
    django.setup()
    row_access.allow_all_by_default()
    connection.settings_dict["NAME"] = database
    connection.settings_dict["OPTIONS"]["options"] = options

"""Rows of statements as instances of Django's models.

Django's own statements would be put together anew for each recall, column by column, which takes
longer than the database needs to answer them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from django.db import connection, models

Model = TypeVar("Model", bound=models.Model)


def columns(model: type[models.Model], table: str) -> str:
    """All columns of the model, as a statement lists them.

    Args:
        table: What the statement calls its table.
    """
    return ", ".join(f'{table}."{field.column}"' for field in _fields(model))


def read(model: type[Model], values: Iterator[Any]) -> Model | None:
    """The instance that the next values make; None where a join found no row."""
    fields = _fields(model)
    own = [
        field.from_db_value(value, None, connection) if hasattr(field, "from_db_value") else value
        for field, value in zip(fields, values, strict=False)
    ]
    if own[0] is None:
        return None
    return model.from_db(connection.alias, [field.attname for field in fields], own)


def _fields(model: type[models.Model]) -> Sequence[models.Field[Any, Any]]:
    return model._meta.concrete_fields

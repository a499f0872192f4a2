"""What belongs to people, in whatever app: by a key to their account, or by palace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Field, Model


def rows_of(people: Collection[User]) -> dict[str, int]:
    """How many rows of each kind belong to them: by the kind's name, in the plural."""
    counts = Counter({"users": len(people)})
    for model, lookup in belongings():
        found = model._base_manager.filter(**{f"{lookup}__in": people})
        counts[str(model._meta.verbose_name_plural)] += found.count()
    return dict(+counts)


def belongings() -> Iterator[tuple[type[Model], str]]:
    """Each model whose rows are somebody's, with the lookup that leads to whom."""
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if not isinstance(field, Field):
                continue
            if field.related_model is User and not field.many_to_many:
                yield model, field.name
            elif field.name == "palace":
                yield model, "palace__owner"

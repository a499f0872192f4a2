"""Users' names: one spelling each. Who is `alice` is `Alice` as well, and nobody else is."""

from __future__ import annotations

import unicodedata

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models import CharField, Func, QuerySet, Value

# The top of every page shows it.
LONGEST_NAME = 40


class Folded(Func):
    """As the unique index on users' names has it; see migration 0002."""

    template = '(casefold((%(expressions)s) COLLATE "pg_unicode_fast"))'
    output_field = CharField()


def people_called(name: str) -> QuerySet[User]:
    """The one user of this name, however it is written; or nobody."""
    people = get_user_model().objects.alias(folded=Folded("username"))
    return people.filter(folded=Folded(Value(unicodedata.normalize("NFKC", name))))

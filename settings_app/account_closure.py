"""Close an account: first it is closed, then all of its data is deleted.

Closing is one short transaction. From then on no password, key, link or session opens the account,
and its name is free. `palace.curation.deletion` then deletes its data, and resumes after a kill.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import uuid4

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Count, Field, Model, QuerySet, TextField, Value
from django.utils import timezone

from llm import usage
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.secrets import Unreadable, seal, unseal


def rows_of(people: Collection[User]) -> dict[str, int]:
    """The number of their rows by kind, named in the plural."""
    counts = Counter({"users": len(people)})
    first, *others = (_counted(model, lookup, people) for model, lookup in belongings())
    for kind, count in first.union(*others, all=True):
        counts[kind] += count
    return dict(+counts)


def _counted(
    model: type[Model], lookup: str, people: Collection[User]
) -> QuerySet[Any, tuple[str, int]]:
    """The kind's name, and how many of its rows belong to these people."""
    # No model has fields of these names.
    kind = Value(str(model._meta.verbose_name_plural), TextField())
    found = model._base_manager.filter(**{f"{lookup}__in": people}).order_by()
    rows: Any = found.annotate(_kind=kind).values("_kind").annotate(_rows=Count("*"))
    counted: QuerySet[Any, tuple[str, int]] = rows.values_list("_kind", "_rows")
    return counted


def belongings() -> Iterator[tuple[type[Model], str]]:
    """Each model whose rows have an owner, with the lookup of the owner."""
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if not isinstance(field, Field):
                continue
            if field.related_model is User and not field.many_to_many:
                yield model, field.name
            elif field.name == "palace":
                yield model, "palace__owner"


# Has a space, so that no user can have this name.
_CLOSED = "closed "


@dataclass(frozen=True, slots=True)
class Receipt:
    """The rows of an account when it was closed, by kind, without the account's name."""

    user_id: int
    closed_at: datetime
    rows: dict[str, int]

    @property
    def is_finished(self) -> bool:
        """Whether all rows are deleted by now."""
        return not User.objects.filter(pk=self.user_id).exists()

    def sealed(self) -> str:
        """The receipt, encrypted, for an address; the server does not store it."""
        return seal(json.dumps([self.user_id, self.closed_at.isoformat(), self.rows]))

    @classmethod
    def unsealed(cls, text: str) -> Self:
        """
        Raises:
            Unreadable: it is not one of this server's.
        """
        opened = unseal(text)
        try:
            user_id, closed_at, rows = json.loads(opened)
            return cls(user_id, datetime.fromisoformat(closed_at), rows)
        except (TypeError, ValueError):
            raise Unreadable from None


def close(user: User, *, but: Collection[type[Model]]) -> Receipt:
    """Close the account, and delete what belongs to it directly: keys, sessions, settings, costs.

    Args:
        but: Models whose rows are deleted later, because they may be many.
    """
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        receipt = Receipt(locked.pk, timezone.now(), rows_of([locked]))
        keys, name = list(ApiKey.objects.filter(owner=locked)), locked.get_username()
        _lock(locked)
        for model, lookup in belongings():
            if model not in but and lookup != "palace__owner":
                model._base_manager.filter(**{lookup: locked}).delete()
        _entries_about(locked).delete()
    throttling.forget_requests(keys)
    throttling.forget_name(name)
    usage.forget_totals(receipt.user_id)
    return receipt


def closed() -> QuerySet[User]:
    """Accounts that are closed but not yet deleted."""
    return User.objects.filter(username__startswith=_CLOSED, is_active=False)


def _lock(user: User) -> None:
    user.username = f"{_CLOSED}{uuid4().hex}"
    user.first_name = user.last_name = user.email = ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()


def _entries_about(user: User) -> QuerySet[LogEntry]:
    """The admin site's log entries about these people, which have their names."""
    kind = ContentType.objects.get_for_model(User)
    return LogEntry.objects.filter(content_type=kind, object_id=str(user.pk))

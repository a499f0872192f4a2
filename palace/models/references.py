"""A foreign key that joins by the palace and the key.

A key alone finds the row, but not the machine: where the tables are spread over machines by their
palace, a join that leaves it out asks all of them. The tables' own constraints are of the same two
columns, so the planner knows how many rows such a join finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.db import models
from django.db.models import Q
from django.db.models.fields.related_descriptors import (
    ForwardManyToOneDescriptor,
    ReverseManyToOneDescriptor,
)
from django.db.models.lookups import Exact
from django.utils.functional import cached_property

if TYPE_CHECKING:
    from palace.models.palace import InPalace

    ForwardOfAny = ForwardManyToOneDescriptor[Any]
    BackwardOfAny = ReverseManyToOneDescriptor[Any]
else:
    ForwardOfAny, BackwardOfAny = ForwardManyToOneDescriptor, ReverseManyToOneDescriptor

_ATTRIBUTE = "palace_id"
_Set = TypeVar("_Set")
_Get = TypeVar("_Get")


def palace_of(row: models.Model) -> dict[str, Any]:
    """The condition that its palace is this row's; none where the row was loaded without it."""
    return {_ATTRIBUTE: row.__dict__[_ATTRIBUTE]} if row.__dict__.get(_ATTRIBUTE) else {}


def _of_palaces(rows: models.QuerySet[Any], instances: Iterable[models.Model]) -> Any:
    """Only those of the instances' palaces; a query set that is cut to a length stays so."""
    palaces = {instance.__dict__.get(_ATTRIBUTE) for instance in instances}
    if None in palaces:
        return rows
    narrowed = rows.all()
    narrowed.query.add_q(Q(palace_id__in=palaces))
    return narrowed


class _Forward(ForwardOfAny):
    def get_prefetch_querysets(
        self, instances: list[Any], querysets: list[Any] | None = None
    ) -> Any:
        rows = querysets[0] if querysets else self.get_queryset(instance=instances[0])
        return super().get_prefetch_querysets(instances, [_of_palaces(rows, instances)])


class _Backward(BackwardOfAny):
    @cached_property
    def related_manager_cls(self) -> Any:
        plain = cast("Any", ReverseManyToOneDescriptor.related_manager_cls).func(self)

        class OfOnePalace(plain):  # type: ignore[misc, valid-type]
            def __init__(self, instance: InPalace) -> None:
                super().__init__(instance)
                self.core_filters |= palace_of(instance)

            def get_prefetch_querysets(
                self, instances: Sequence[models.Model], querysets: Sequence[Any] | None = None
            ) -> Any:
                rows = querysets[0] if querysets else super(plain, self).get_queryset()
                return super().get_prefetch_querysets(instances, [_of_palaces(rows, instances)])

        return OfOnePalace


class ForeignKeyInPalace(models.ForeignKey[_Set, _Get]):
    """A reference to a row of the same palace."""

    related_accessor_class = _Backward
    forward_related_accessor_class = _Forward

    def get_extra_restriction(self, alias: str | None, related_alias: str | None) -> Any:
        """The condition of a join, in addition to the key.

        Args:
            alias: The alias of the referenced table.
            related_alias: The alias of the referencing table.
        """
        # Of a subquery whose first table was left out there is only one.
        if alias is None or related_alias is None:
            return None
        there = cast("Any", self.remote_field.model._meta.get_field("palace"))
        here = cast("Any", self.model._meta.get_field("palace"))
        return Exact(there.get_col(alias), here.get_col(related_alias))

    def get_extra_descriptor_filter(self, instance: models.Model) -> dict[str, Any]:
        return palace_of(instance)

    def deconstruct(self) -> Any:
        """In the tables it is a foreign key like others, and migrations need no class of ours."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs

"""Palace: the table, the rows that belong to one, and opening one.

While a palace is open, the database shows no row of any other. Foreign keys of its rows join by the
palace and the key: a key alone finds the row, but not the machine. Where the tables are spread over
machines by their palace, a join that leaves it out asks all of them. The tables' own constraints
are of the same two columns, so the planner knows how many rows such a join finds.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import OuterRef, Q, Value
from django.db.models.expressions import Col, ResolvedOuterRef
from django.db.models.fields.related_descriptors import (
    ForwardManyToOneDescriptor,
    ReverseManyToOneDescriptor,
)
from django.db.models.lookups import Exact
from django.db.models.sql.where import AND
from django.utils.functional import cached_property

from isolation import row_access
from isolation.raw_sql import columns, fetch_rows, read_instance
from isolation.row_access import PALACE, Access
from language import analyzer
from language.storable import LABEL_LENGTH

if TYPE_CHECKING:
    from django.contrib.auth.models import User

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


Row = TypeVar("Row", bound=models.Model)
P = ParamSpec("P")
R = TypeVar("R")


def current_analyzer() -> int:
    return analyzer.VERSION


class PalaceQuerySet(models.QuerySet["Palace"]):
    def own(self, owner: User) -> Palace:
        """The user's own palace, created on first use."""
        known = self.named(owner.pk, "")
        return known or self.get_or_create(owner=owner, subject="")[0]

    def named(self, owner_id: int, subject: str) -> Palace | None:
        """The account's palace with this name, if it exists: for each request."""
        rows = fetch_rows(_of_owner(), [owner_id, subject], prepared=True)
        return read_instance(Palace, iter(rows[0])) if rows else None

    def with_old_postings(self) -> Self:
        """Palaces whose postings an earlier version of the analyzer made."""
        return self.filter(analyzer__lt=analyzer.VERSION)


class Palace(models.Model):
    """All that is remembered about one person.

    `subject` is empty for the owner's own palace; an API key's owner names others by it.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="palaces")
    subject = models.CharField(max_length=200, blank=True, default="")
    # Numbers of purged places are not reused, so that an old pointer never leads elsewhere.
    highest_wing = models.PositiveIntegerField(
        default=0, help_text="No wing is given a number up to here again."
    )
    highest_room = models.PositiveIntegerField(
        default=0, help_text="No room is given a number up to here again."
    )
    purged_unnamed = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Drawers that were purged before purges kept their ids.",
    )
    rejected_areas = ArrayField(
        models.CharField(max_length=LABEL_LENGTH),
        default=list,
        db_default=[],
        editable=False,
        help_text="Areas of life that get no wing by rules, and for which none is suggested.",
    )
    analyzer = models.PositiveSmallIntegerField(
        default=current_analyzer,
        db_default=1,  # Of a row that an older version of the program wrote.
        editable=False,
        help_text="The version of the analyzer that the postings are of.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PalaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "subject"], name="palace_owner_subject")
        ]

    def __str__(self) -> str:
        return self.subject or f"palace of {self.owner}"

    def lock(self) -> None:
        """Make this transaction the only writer of the palace; readers are not blocked.

        Call it before writing to drawers or passages: a trigger takes the same lock after each
        such statement, and without this order two writers could deadlock.
        """
        Palace.objects.select_for_update(no_key=True).only("pk").get(pk=self.pk)

    def reject_areas(self, areas: Collection[str], *, are_rejected: bool = True) -> None:
        """Let rules make no wings of these areas of life, or again. The caller locks the palace."""
        row = Palace.objects.filter(pk=self.pk)
        others = set(row.values_list("rejected_areas", flat=True).get()).difference(areas)
        row.update(rejected_areas=sorted(others.union(areas if are_rejected else ())))

    def lock_if_there(self) -> bool:
        """`lock`; returns whether the palace still exists."""
        locked = Palace.objects.select_for_update(no_key=True).filter(pk=self.pk)
        return bool(locked.values_list("pk"))


class InPalaceQuerySet(models.QuerySet[Row]):
    def within(self, palace: Palace) -> Self:
        return self.filter(palace=palace)


class OuterPalace(OuterRef):
    """In a subquery for each row: the row's palace.

    Its key, where the rows outside are of one palace: past one machine it says to which machine the
    subquery goes. A reference to the row outside would not, as the planner does not follow it.
    """

    def __init__(self) -> None:
        super().__init__(_ATTRIBUTE)

    def resolve_expression(self, *_args: Any, **_more: Any) -> Any:
        return _OuterPalace(_ATTRIBUTE)


class _OuterPalace(ResolvedOuterRef):
    def resolve_expression(self, query: Any = None, *args: Any, **more: Any) -> Any:
        given = _given_palace(query)
        return Value(given) if given else super().resolve_expression(query, *args, **more)


def _given_palace(query: Any) -> int | None:
    """The key of the palace that the query's rows are of, if they are of one that is given."""
    where = query.where
    for condition in where.children if where.connector == AND and not where.negated else ():
        if isinstance(condition, Exact) and isinstance(condition.rhs, int):
            column = condition.lhs
            is_own = isinstance(column, Col) and column.alias == query.base_table
            if is_own and column.target.attname == _ATTRIBUTE:
                return condition.rhs
    return None


class SavedInPalace(models.Model):
    """A row with a `palace`, which is read again and saved by the palace and the key."""

    class Meta:
        abstract = True

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: models.QuerySet[Self] | None = None,
    ) -> None:
        """Also what loads a field that was left out at first."""
        if from_queryset is None:
            from_queryset = type(self)._base_manager.filter(**palace_of(self))
        super().refresh_from_db(using, fields, from_queryset)

    def _do_update(self, base_qs: Any, *args: Any, **options: Any) -> Any:
        """`save` finds the row by its palace and its key; Django has no public way to say so."""
        return super()._do_update(base_qs.filter(**palace_of(self)), *args, **options)


class InPalace(SavedInPalace):
    """A row of one palace. Other rows refer to it by the palace's key and its own."""

    palace = models.ForeignKey(Palace, models.DO_NOTHING, related_name="+", db_constraint=False)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True


@cache
def _of_owner() -> str:
    return (
        f"SELECT {columns(Palace, 'p')} FROM palace_palace p"  # noqa: S608 - from the model.
        " WHERE p.owner_id = %s AND p.subject = %s"
    )


def access_to(palace: Palace) -> Access:
    return Access(PALACE, palace=palace.pk, owner=palace.owner_id)


@contextmanager
def open_palace(palace: Palace) -> Iterator[None]:
    """Inside the block only one palace and its owner's account are accessible."""
    with row_access.use(access_to(palace)):
        yield


@contextmanager
def in_palace_of(
    rows: models.QuerySet[Any], palace: str = "palace_id", owner: str = "palace__owner_id"
) -> Iterator[int | None]:
    """Open the palace of a task's row inside the block, and yield its key; None if it is gone."""
    with row_access.sweep("whose it is"):
        found = rows.values_list(palace, owner).first()
    with row_access.open_rows(*found) if found else row_access.deny_all():
        yield found[0] if found else None


def in_palace(palaces: models.QuerySet[Palace]) -> AbstractContextManager[int | None]:
    """`in_palace_of` for a task that has the key of the palace itself."""
    return in_palace_of(palaces, "pk", "owner_id")


def opens_palace(
    function: Callable[Concatenate[Palace, P], R],
) -> Callable[Concatenate[Palace, P], R]:
    """A function of a palace, which is open while it runs."""

    @wraps(function)
    def opened(palace: Palace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with open_palace(palace):
            return function(palace, *args, **kwargs)

    return opened

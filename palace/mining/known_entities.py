"""Known: the palace's entities, looked up by the names a window holds."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping

from language.extraction import EntityFound, KnownEntity, named_among
from language.slugs import slug_of
from palace.models import Entity, Palace


class PalaceEntities:
    """The entities there are, and those found since, which are still to be written.

    A palace has thousands and a window names a few: only those are read, each name once.
    """

    def __init__(self, palace: Palace) -> None:
        self._entities = Entity.objects.filter(palace=palace).order_by("pk")
        self._looked_up: set[str] = set()
        self._names: dict[str, KnownEntity] = {}
        # Few have any, and there is no telling which of them a window names.
        aliased = self._read(self._entities.exclude(aliases=[]))
        self._aliases = {alias.casefold(): entity for entity in aliased for alias in entity.aliases}

    def named(self, names: Collection[str]) -> Mapping[str, KnownEntity]:
        """See `KnownEntities`. Whose own name it is goes before whose alias."""
        self.look_up(names)
        # In windows by the hundred, not put together anew each time.
        return named_among(ChainMap(self._names, self._aliases), names)

    def look_up(self, names: Collection[str]) -> None:
        """Read those that are going to be asked for by one of these names."""
        slugs = {slug_of(name) for name in names} - self._looked_up
        if slugs:
            self._looked_up |= slugs
            # All kinds, as the index begins with the kind.
            rows = self._entities.filter(kind__in=Entity.Kind.values, slug__in=slugs)
            self._names |= {entity.name.casefold(): entity for entity in self._read(rows)}

    def learn(self, found: Iterable[EntityFound]) -> None:
        """Know these too; whoever is known under such a name already stays."""
        for entity in found:
            known = KnownEntity(entity.kind, entity.name, entity.aliases)
            self._names.setdefault(entity.name.casefold(), known)
            for alias in entity.aliases:
                self._aliases.setdefault(alias.casefold(), known)

    @staticmethod
    def _read(rows: Iterable[Entity]) -> list[KnownEntity]:
        return [KnownEntity(row.kind, row.name, tuple(row.aliases)) for row in rows]

"""The entities that facts are about: found by name or alias, made where there is none."""

from __future__ import annotations

from language.candidate import Thing
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.models import Entity, Palace


def entity_for(palace: Palace, thing: Thing) -> Entity:
    """The palace's entity of that name, of that kind if there are several.

    Call it holding the palace: whoever else makes entities waits.
    """
    found = find_entity(palace, thing.name, prefer=thing.kind)
    if found is not None:
        return found
    name = storable_label(thing.name)
    return Entity.objects.create(
        palace=palace, kind=thing.kind, slug=slug_of(name), name=name[:LABEL_LENGTH]
    )


def find_entity(palace: Palace, name: str, *, prefer: str = "") -> Entity | None:
    """The palace's entity of that name, or else one that is called so as well.

    Args:
        prefer: A kind; of several of one name it is the one of this kind, else the oldest.
    """
    name = storable_label(name)
    # All kinds, as the index begins with the kind.
    kinds = Entity.Kind.values
    named = list(
        Entity.objects.filter(palace=palace, kind__in=kinds, slug=slug_of(name)).order_by("pk")
    )
    named = named or list(Entity.objects.filter(palace=palace, aliases__contains=[name])[:1])
    same_kind = [entity for entity in named if entity.kind == prefer]
    return next(iter(same_kind or named), None)

"""The entities that facts are about: found by name or alias, made where there is none."""

from __future__ import annotations

from palace.facts.candidate import Thing
from palace.models import Entity, Palace
from palace.slugs import slug_of
from palace.storable import LABEL_LENGTH, storable_label


def entity_for(palace: Palace, thing: Thing) -> Entity:
    """The palace's entity of that name, of that kind if there are several.

    Call it holding the palace: whoever else makes entities waits.
    """
    name = storable_label(thing.name)
    slug = slug_of(name)
    # All kinds, as the index begins with the kind.
    named = list(
        Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values, slug=slug).order_by("pk")
    )
    named = named or list(Entity.objects.filter(palace=palace, aliases__contains=[name])[:1])
    same_kind = [entity for entity in named if entity.kind == thing.kind]
    if same_kind or named:
        return (same_kind or named)[0]
    return Entity.objects.create(
        palace=palace, kind=thing.kind, slug=slug, name=name[:LABEL_LENGTH]
    )

"""Entities that count as people until somebody calls them a pet."""

from __future__ import annotations

from django.db.models import Q

from language.facts import PREDICATES, USER
from palace.models import Activity, Drawer, Entity, Fact, Palace

# Predicates of these categories are only said of people.
_CATEGORIES = frozenset({"work", "education", "skills", "people"})
_OF_PEOPLE = {
    *(name for name, of in PREDICATES.items() if of.category.partition("/")[0] in _CATEGORIES),
    *("has_pet", "lives_with", "owns", "drives", "uses"),
}
# Pets have a school, a skill and friends, too, but no job.
_OF_WORKERS = {name for name, of in PREDICATES.items() if of.category.partition("/")[0] == "work"}
_BY_THE_OWNER = (Activity.Kind.ENTITIES_MERGED, Activity.Kind.ENTITY_SPLIT)


def recognise_pet(palace: Palace, entity: Entity) -> Entity | None:
    """The entity that is called a pet; None if it is something else with the same name.

    A person of whom nothing is known that only people do becomes a pet, and so does a thing of
    which nothing is known. An entity that the owner merged, split or restored keeps its kind. The
    caller locks the palace.
    """
    if entity.kind == Entity.Kind.PET or _is_the_owners_choice(palace, entity):
        return entity
    is_another = _IS_ANOTHER.get(Entity.Kind(entity.kind))
    if is_another is None or is_another(palace, entity):
        return None
    same_name = Entity.objects.filter(palace=palace, kind=Entity.Kind.PET, slug=entity.slug)
    if not same_name.exists():
        entity.kind = Entity.Kind.PET
        entity.save(update_fields=["kind"])
    return entity


def is_of_people(predicate: str) -> bool:
    """Whether no pet is said to be or do this."""
    return predicate in _OF_WORKERS


def _is_the_owners_choice(palace: Palace, entity: Entity) -> bool:
    changes = Activity.objects.filter(palace=palace, kind__in=_BY_THE_OWNER)
    return changes.filter(detail__about__contains=[str(entity.uuid)]).exists()


def _is_a_person(palace: Palace, entity: Entity) -> bool:
    """Whether it is the user or speaks, or facts say of it what is only said of people."""
    if entity.name == USER:
        return True
    facts = Fact.objects.within(palace)
    # Somebody's pet may have facts of its own; nobody's with facts was a person all along.
    is_had = facts.filter(object_entity=entity, predicate="has_pet").exists()
    does = {"predicate__in": _OF_PEOPLE} if is_had else {}
    of_people = Q(subject=entity, **does) | (
        Q(object_entity=entity, predicate__in=_OF_PEOPLE - {"has_pet", "owns"})
    )
    if facts.filter(of_people).exists():
        return True
    return Drawer.objects.filter(palace=palace, speaker=entity.name).exists()


def _is_known(palace: Palace, entity: Entity) -> bool:
    about = Q(subject=entity) | Q(object_entity=entity)
    return Fact.objects.within(palace).filter(about).exists()


# Of places, organisations, projects and events none becomes a pet.
_IS_ANOTHER = {Entity.Kind.PERSON: _is_a_person, Entity.Kind.ITEM: _is_known}

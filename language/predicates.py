"""Predicates: what can be said of a subject, and of which only one can be true at a time."""

from __future__ import annotations

from dataclasses import dataclass

# Of a candidate that amends what is known without saying what it is of; no fact is kept with it.
UNRESOLVED = ""
# The confidence in what is said of a name that nobody has introduced in the same messages.
HEARSAY = 0.5
# The object of a denial of whoever one is married to or together with.
SPOUSE = "spouse"


@dataclass(frozen=True, slots=True)
class Predicate:
    """
    Attributes:
        single: A subject has one at a time: another one takes its place.
        category: Where facts of this kind belong unless told otherwise.
    """

    name: str
    single: bool
    category: str


_LISTED = (
    Predicate("name", single=True, category="identity"),
    Predicate("age", single=True, category="identity"),
    Predicate("birthday", single=True, category="identity"),
    Predicate("pronouns", single=True, category="identity"),
    Predicate("nationality", single=True, category="identity"),
    Predicate("from", single=True, category="identity"),
    Predicate("height", single=True, category="identity"),
    Predicate("weight", single=True, category="health"),
    Predicate("rent", single=True, category="home"),
    Predicate("salary", single=True, category="work"),
    Predicate("lives_in", single=True, category="home/place"),
    Predicate("lives_with", single=False, category="home/people"),
    Predicate("works_at", single=True, category="work/employer"),
    Predicate("works_as", single=True, category="work/role"),
    Predicate("works_on", single=False, category="work/projects"),
    Predicate("studies", single=True, category="education"),
    Predicate("studies_at", single=True, category="education"),
    Predicate("graduated_from", single=False, category="education"),
    Predicate("speaks", single=False, category="skills/languages"),
    Predicate("learns", single=False, category="skills"),
    Predicate("knows", single=False, category="skills"),
    Predicate("uses", single=False, category="things/tools"),
    Predicate("owns", single=False, category="things"),
    Predicate("drives", single=True, category="things/vehicles"),
    Predicate("has_pet", single=False, category="home/pets"),
    Predicate("married_to", single=True, category="people/family"),
    Predicate("engaged_to", single=True, category="people/family"),
    Predicate("partner", single=True, category="people/family"),
    Predicate("relationship_status", single=True, category="people/family"),
    Predicate("has_child", single=False, category="people/family"),
    Predicate("has_parent", single=False, category="people/family"),
    Predicate("has_sibling", single=False, category="people/family"),
    Predicate("has_relative", single=False, category="people/family"),
    Predicate("friend_of", single=False, category="people/friends"),
    Predicate("colleague_of", single=False, category="people/work"),
    Predicate("reports_to", single=True, category="people/work"),
    Predicate("diet", single=True, category="health/diet"),
    Predicate("allergic_to", single=False, category="health"),
    Predicate("has_condition", single=False, category="health"),
    Predicate("takes", single=False, category="health"),
    Predicate("smokes", single=True, category="health/habits"),
    Predicate("drinks_alcohol", single=True, category="health/habits"),
    Predicate("does", single=False, category="habits"),
    Predicate("prefers", single=False, category="preferences"),
    Predicate("likes", single=False, category="preferences"),
    Predicate("dislikes", single=False, category="preferences"),
    Predicate("favourite", single=True, category="preferences"),
    Predicate("opinion", single=True, category="opinions"),
    Predicate("wants", single=False, category="goals"),
    Predicate("plans", single=False, category="plans"),
    Predicate("did", single=False, category="events"),
    Predicate("visited", single=False, category="events/travel"),
    Predicate("is_a", single=False, category="identity"),
)
PREDICATES = {predicate.name: predicate for predicate in _LISTED}


def is_single(name: str) -> bool:
    """Whether a subject has one at a time; of a predicate that is not listed, many are allowed."""
    listed = PREDICATES.get(name)
    return bool(listed and listed.single)


def category_of(name: str) -> str:
    listed = PREDICATES.get(name)
    return listed.category if listed else ""

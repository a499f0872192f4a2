"""Facts of our own writing that a dream is tried on: pairs that say the same, pairs at odds, pairs
that only look so, and facts with nothing to do with each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
SUBJECT = "User"
# Whom they are about: of whom nothing else is told that would be at odds with it.
PEOPLE = (
    "Aldous Brigid Cosmo Delphine Evander Fleur Gideon Hester Ivo Jocasta Kester Leonora Magnus"
    " Nerys Osbert Perdita Quentin Rosalind Stellan Tamsin Ursula Valentin Winifred Xanthe"
).split()


class BadPlanting(Exception):
    """A line is invalid."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One fact, about `User` in the files; `about` is the person it is assigned to."""

    predicate: str
    object: str
    text: str
    about: str = SUBJECT

    def of(self, person: str) -> Planted:
        return Planted(self.predicate, self.object, self.text.replace(SUBJECT, person), person)


@dataclass(frozen=True, slots=True)
class Group:
    """Facts that belong together, in the order in which they were said.

    Attributes:
        kind: duplicates, contradictions, near_misses or others.
    """

    kind: str
    facts: tuple[Planted, ...]

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(fact.text for fact in self.facts)


KINDS = ("duplicates", "contradictions", "near_misses", "others")


def read(limit: int | None = None) -> list[Group]:
    """All groups, each assigned to a person without other facts on the subject.

    Args:
        limit: The number of each kind; by default all.

    Raises:
        BadPlanting: a line is none.
    """
    groups = [group for kind in KINDS for group in list(_lines(kind))[:limit]]
    return list(_assign_people(groups))


def _lines(kind: str) -> Iterator[Group]:
    path = FOLDER / f"{kind}.txt"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            facts = [part.split(" | ") for part in line.strip().split(" || ")]
            if any(len(fact) != 3 for fact in facts):
                raise BadPlanting(f"{path.name}:{number} is not predicate | object | text.")
            yield Group(kind, tuple(Planted(*(each.strip() for each in fact)) for fact in facts))


def _assign_people(groups: Sequence[Group]) -> Iterator[Group]:
    """Two groups with a word of their objects, or a matter, in common are of two people."""
    taken: defaultdict[str, set[str]] = defaultdict(set)
    texts: set[str] = set()
    for group in groups:
        matters = set(_matters(group.facts))
        person = min(
            PEOPLE,
            key=lambda name: (len(taken[name] & matters), len(taken[name]), PEOPLE.index(name)),
        )
        taken[person] |= matters
        assigned = Group(group.kind, tuple(fact.of(person) for fact in group.facts))
        if texts & assigned.texts:
            raise BadPlanting(f"Stated twice: {sorted(texts & assigned.texts)}")
        texts |= assigned.texts
        yield assigned


def _matters(facts: Iterable[Planted]) -> Iterator[str]:
    common = {"a", "the", "in", "of", "to", "on", "for", "at", "and", "with", "each", "every"}
    for fact in facts:
        yield fact.predicate if fact.predicate not in _MANY else ""
        words = set(fact.object.lower().split()) - common
        yield from words
        if fact.predicate in ("diet", "dietary_preference") or words & {"meat", "fish", "steak"}:
            yield "food"
        if fact.predicate in _TOGETHER:
            yield "together"


# Of these one may well have several that are nothing to each other.
_MANY = frozenset(
    "likes dislikes does owns uses knows wants plans prefers works_on learns speaks takes friend_of"
    " has_condition allergic_to has_relative colleague_of visited visits is_a has_sibling".split()
)
_TOGETHER = frozenset(
    "married_to husband wife partner boyfriend girlfriend engaged_to relationship_status"
    " lives_with".split()
)

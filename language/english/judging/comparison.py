"""Compare two known facts by rule: they say the same, contradict each other, or neither.

A missed pair costs less than a wrong one: a person sees each pair found, or it is applied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations

from language.english.judging import (
    LIGHT,
    NARROWING,
    Wording,
    counts,
    is_turned,
    meant,
    without_figures,
    wording_of,
)
from language.facts import FactType, is_single
from language.slugs import slug_of

# Cosines from which two texts that share subject and form may say the same.
FAR = 0.60
NEAR = 0.80
VERY_NEAR = 0.93

# Predicates that models and programs invent, by the listed predicate that each means.
_KNOWN_AS = {
    "lives_in": "resides_in lives_at located_in home lives residence based_in home_city",
    "works_at": "works_for employed_by employer employed_at company workplace",
    "works_as": "job occupation job_title profession role position",
    "birthday": "born_on birth_date date_of_birth birthdate",
    "age": "is_aged aged",
    "married_to": "spouse wife husband has_spouse",
    "partner": "boyfriend girlfriend dating",
    "reports_to": "boss manager has_manager",
    "diet": "dietary_preference eats_diet",
    "nationality": "citizen_of citizenship",
    "from": "comes_from hometown born_in grew_up_in",
    "drives": "drives_car car",
    "salary": "earns income",
    "rent": "pays_rent",
    "has_pet": "pet owns_pet has_dog has_cat",
    "likes": "enjoys loves is_fond_of",
    "dislikes": "hates detests",
    "owns": "has possesses",
    "speaks": "language speaks_language",
    "allergic_to": "allergy has_allergy",
}
_LISTED = {alias: name for name, aliases in _KNOWN_AS.items() for alias in aliases.split()}
_STANCED = frozenset({"likes", "dislikes", "opinion", "prefers"})
_STANCES = {"likes": "positive", "dislikes": "negative"}
# A named object identifies a fact with one of these predicates.
_NAMED = frozenset(
    "has_pet has_child has_sibling has_parent has_relative friend_of colleague_of lives_with"
    " graduated_from".split()
)
_TOGETHER = frozenset({"married_to", "engaged_to", "partner"})
_ALONE = meant("single divorced separated widowed")
_MEATLESS = meant("vegan vegetarian")
_MEAT = meant("meat beef steak chicken pork lamb bacon ham sausage burger fish salmon")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A fact as this module compares it; its wording is computed once.

    Attributes:
        key: The caller's id of the fact.
        scope: Only facts with the same scope and the same subject are compared.
        subject: The subject's name; `subject_key` is the caller's id of it.
        valid_to: Until when it was true; None if it still is.
    """

    key: int
    type: FactType
    scope: Hashable
    subject: str
    subject_key: Hashable
    predicate: str
    object: str
    text: str
    aspect: str = ""
    stance: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    @cached_property
    def wording(self) -> Wording:
        return wording_of(self.text, self.object)

    @cached_property
    def relation(self) -> str:
        """The listed predicate that `predicate` means."""
        return _LISTED.get(self.predicate, self.predicate)

    @cached_property
    def attitude(self) -> str:
        """The stance, also where only the predicate or a denial shows it."""
        if self.predicate == "prefers":
            return ""
        attitude = self.stance or _STANCES.get(self.relation, "")
        turned = {"positive": "negative", "negative": "positive"}
        denied = not self.stance and self.wording.denied
        return turned.get(attitude, attitude) if denied else attitude

    @property
    def group(self) -> Hashable:
        """Only facts of one group are compared."""
        return self.scope, self.subject_key


def pairs_sharing_words(
    statements: Sequence[Statement], places: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Pairs worth comparing, by place: equal words or objects, or values of a single predicate.

    Args:
        places: Which of the statements to pair; they are of one group.
    """
    buckets: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    diets, foods = [], []
    for place in places:
        one = statements[place]
        for key in _shared(one):
            buckets[key].append(place)
        if one.relation == "diet":
            diets.append(place)
        if one.relation in ("likes", "does", "eats"):
            foods.append(place)
    for bucket in buckets.values():
        yield from combinations(bucket, 2)
    yield from ((min(diet, food), max(diet, food)) for diet in diets for food in foods)


def _shared(one: Statement) -> Iterator[tuple[str, object]]:
    """Keys of a statement; two that share one are worth comparing."""
    yield "words", one.wording.words
    yield "asserted", one.wording.asserted
    if one.wording.object:
        yield "object", one.wording.object
    if is_single(one.relation):
        yield "single", one.relation
    if one.relation == "lives_with":
        yield "single", "lives_with"
    if one.relation in _TOGETHER or one.relation == "relationship_status":
        yield "single", "together"
    if one.wording.figures:
        yield "figures", without_figures(one.text)


def say_the_same(one: Statement, other: Statement, cosine: float) -> bool:
    """Whether two facts say the same, so that one of them is enough.

    Args:
        cosine: The cosine of their texts' vectors; 0 if it is not known.
    """
    if not _comparable(one, other) or one.wording.denied != other.wording.denied:
        return False
    if _take_sides(one, other):
        return False
    first, second = one.wording, other.wording
    if is_turned(one.text, other.text):
        return False
    if first.words == second.words and first.figures == second.figures:
        return _same_names(first, second)
    extra = first.asserted ^ second.asserted if first.denied else first.words ^ second.words
    if extra & NARROWING or first.figures != second.figures:
        return False
    if extra <= LIGHT and cosine >= FAR:
        return _same_names(first, second)
    return _same_matter(one, other, cosine)


def _same_matter(one: Statement, other: Statement, cosine: float) -> bool:
    """Whether they say the same in other words, or one of them adds detail."""
    first, second = one.wording, other.wording
    if not first.object or not second.object:
        return False
    if one.relation != other.relation:
        return _done_and_liked(one, other)
    same_object = first.object - LIGHT == second.object - LIGHT
    names, others = set(first.names), set(second.names)
    if same_object and _says_which(one, other) and names == others and cosine >= FAR:
        return first.kin <= second.kin or second.kin <= first.kin
    left, right = first.words - second.words - LIGHT, second.words - first.words - LIGHT
    if same_object and cosine >= NEAR and (names <= others or others <= names):
        return not (left and right) or cosine >= VERY_NEAR
    return False


def _done_and_liked(one: Statement, other: Statement) -> bool:
    """ "Does aerial yoga", "enjoys aerial yoga": a person who sees both would keep one."""
    first, second = one.wording, other.wording
    doing = {one.relation, other.relation} == {"does", "likes"} and not first.denied
    liked = "negative" not in (one.attitude, other.attitude)
    return doing and liked and first.object == second.object and _same_names(first, second)


def _says_which(one: Statement, other: Statement) -> bool:
    """Whether predicate and object identify the matter: a single value, or a name."""
    if is_single(one.relation) and one.relation not in ("favourite", "opinion"):
        return True
    by_name = one.object[:1].isupper() and other.object[:1].isupper()
    return one.relation in _NAMED and by_name


def contradict(older: Statement, newer: Statement) -> bool:
    """Whether both cannot be true at once."""
    if not _comparable(older, newer) or older.valid_to is not None:
        return False
    if _opposed(older, newer) or _denied(older, newer) or _excluded(older, newer):
        return True
    return _one_at_a_time(older, newer) or _counted(older, newer)


def _opinion_contradicts(opinion: Statement, taste: Statement) -> bool:
    """Whether an opinion on a thing contradicts a like or dislike of that thing."""
    of_it = meant(opinion.subject) == taste.wording.object
    return _take_sides(opinion, taste) and of_it and opinion.aspect == taste.aspect


def opinions_against_tastes(
    statements: Sequence[Statement],
) -> Iterator[tuple[Statement, Statement]]:
    """Opinions with the likes and dislikes that contradict them.

    "User loves Rust" is about the user; "Rust is a chore" is about Rust.
    """
    opinions: defaultdict[str, list[Statement]] = defaultdict(list)
    for one in statements:
        if one.type == "opinion":
            opinions[slug_of(one.subject)].append(one)
    for taste in statements:
        if taste.relation not in ("likes", "dislikes") or not taste.object:
            continue
        for opinion in opinions[slug_of(taste.object)]:
            same = opinion.scope == taste.scope
            if same and opinion is not taste and _opinion_contradicts(opinion, taste):
                yield opinion, taste


def _take_sides(one: Statement, other: Statement) -> bool:
    """Whether one is for and the other against."""
    return {one.attitude, other.attitude} == {"positive", "negative"}


def _comparable(one: Statement, other: Statement) -> bool:
    """Whether both can hold at one time; events happen again, so they are never compared."""
    if "event" in (one.type, other.type):
        return False
    if one.aspect.casefold() != other.aspect.casefold():
        return False
    ends, begins = one.valid_to, other.valid_from
    apart = ends is not None and begins is not None and ends <= begins
    ends, begins = other.valid_to, one.valid_from
    return not (apart or (ends is not None and begins is not None and ends <= begins))


def _same_names(one: Wording, other: Wording) -> bool:
    """Whether shared names have one order: "Anna met Ben" is not "Ben met Anna"."""
    both = set(one.names) & set(other.names)
    return [n for n in one.names if n in both] == [n for n in other.names if n in both]


def _opposed(one: Statement, other: Statement) -> bool:
    """Whether one likes what the other dislikes, or they prefer the opposite of two things."""
    if one.relation == other.relation == "prefers":
        return one.wording.words == other.wording.words and is_turned(one.text, other.text)
    if not {one.relation, other.relation} <= _STANCED:
        return False
    if one.object[:1].isupper() != other.object[:1].isupper():
        return False  # The band, and the piece.
    return (
        _take_sides(one, other)
        and bool(one.wording.object)
        and one.wording.object == other.wording.object
    )


def _denied(one: Statement, other: Statement) -> bool:
    """Whether one denies what the other asserts."""
    if one.wording.denied == other.wording.denied:
        return False
    extra = one.wording.asserted ^ other.wording.asserted
    if extra & NARROWING or one.attitude:
        return False
    return extra <= LIGHT and one.wording.figures == other.wording.figures


def _excluded(one: Statement, other: Statement) -> bool:
    """Whether one excludes the other: another partner, living alone, a food the diet excludes."""
    if _TOGETHER.issuperset((one.relation, other.relation)):
        names = set(one.wording.names), set(other.wording.names)
        return all(names) and names[0].isdisjoint(names[1])
    if one.relation == other.relation == "lives_with":
        return ("nobody" in one.wording.object) != ("nobody" in other.wording.object)
    return any(
        _is_alone_of(first, second) or _is_not_eaten(first, second)
        for first, second in ((one, other), (other, one))
    )


def _is_alone_of(status: Statement, other: Statement) -> bool:
    alone = status.relation == "relationship_status" and bool(status.wording.object & _ALONE)
    return alone and other.relation in _TOGETHER and not other.wording.denied


def _is_not_eaten(diet: Statement, other: Statement) -> bool:
    meatless = diet.relation == "diet" and bool(diet.wording.words & _MEATLESS)
    eats = other.relation in ("likes", "eats") or bool(other.wording.words & meant("eats"))
    eats = eats and bool(other.wording.object & _MEAT)
    liked = other.attitude != "negative" and not other.wording.denied
    return meatless and not diet.wording.denied and eats and liked


def _one_at_a_time(one: Statement, other: Statement) -> bool:
    """Whether they give two values where one is possible; a more exact value is not another."""
    name = one.relation
    if name != other.relation or not is_single(name) or name == "opinion":
        return False
    if one.wording.denied or other.wording.denied or one.wording.kin != other.wording.kin:
        return False
    first, second = one.wording.object, other.wording.object
    if not first or not second or first <= second or second <= first:
        return False
    if name == "favourite":
        return one.wording.words - first == other.wording.words - second
    return True


def _counted(one: Statement, other: Statement) -> bool:
    """Whether they give different amounts of the same thing."""
    if one.relation != other.relation or one.wording.figures == other.wording.figures:
        return False
    if not (one.wording.figures and other.wording.figures) or one.wording.kin != other.wording.kin:
        return False
    if not (counts(one.text) and counts(other.text)):
        return False
    about = without_figures(one.text)
    return bool(about) and about == without_figures(other.text)

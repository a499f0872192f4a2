"""What two facts are to each other by rule: the same, at odds, or neither. Rather too little found
than too much: what is found is put before a person, or applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from language.english.judging.wording import (
    LIGHT,
    NARROWING,
    Wording,
    counts,
    is_turned,
    meant,
    without_figures,
    wording_of,
)
from language.facts import is_single
from palace.models import Fact

# Cosines from which two texts that share subject and form may say the same.
FAR = 0.60
NEAR = 0.80
VERY_NEAR = 0.93

# Predicates that models and programs make up, and what the listed one is.
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
# Of these, the object's name says which.
_NAMED = frozenset(
    "has_pet has_child has_sibling has_parent has_relative friend_of colleague_of lives_with"
    " graduated_from".split()
)
TOGETHER = frozenset({"married_to", "engaged_to", "partner"})
_ALONE = meant("single divorced separated widowed")
_MEATLESS = meant("vegan vegetarian")
_MEAT = meant("meat beef steak chicken pork lamb bacon ham sausage burger fish salmon")


@dataclass(frozen=True)
class Statement:
    """A fact with what comparing it needs. Made once, compared often."""

    fact: Fact

    @cached_property
    def wording(self) -> Wording:
        return wording_of(self.fact.text, self.fact.object)

    @cached_property
    def predicate(self) -> str:
        """As it is listed, whatever whoever made the fact called it."""
        return _LISTED.get(self.fact.predicate, self.fact.predicate)

    @cached_property
    def stance(self) -> str:
        if self.fact.predicate == "prefers":
            return ""
        stance = self.fact.stance or _STANCES.get(self.predicate, "")
        turned = {"positive": "negative", "negative": "positive"}
        return turned.get(stance, stance) if self._denies_its_stance else stance

    @property
    def _denies_its_stance(self) -> bool:
        return not self.fact.stance and self.wording.denied

    @property
    def group(self) -> tuple[object, ...]:
        """Only facts of one group are compared."""
        return self.fact.agent, self.fact.run, self.fact.subject_id


def say_the_same(one: Statement, other: Statement, cosine: float) -> bool:
    """Whether one of them is enough.

    Args:
        cosine: Of their texts' vectors; 0 where it is not known.
    """
    if not _comparable(one, other) or one.wording.denied != other.wording.denied:
        return False
    if one.stance != other.stance and {one.stance, other.stance} == {"positive", "negative"}:
        return False
    first, second = one.wording, other.wording
    if is_turned(one.fact.text, other.fact.text):
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
    """The same said of the same, in other words, or by one of them with more."""
    first, second = one.wording, other.wording
    if one.predicate != other.predicate or not first.object or not second.object:
        return False
    same_object = first.object - LIGHT == second.object - LIGHT
    names, others = set(first.names), set(second.names)
    if same_object and _says_which(one, other) and names == others and cosine >= FAR:
        return first.kin <= second.kin or second.kin <= first.kin
    left, right = first.words - second.words - LIGHT, second.words - first.words - LIGHT
    if same_object and cosine >= NEAR and (names <= others or others <= names):
        return not (left and right) or cosine >= VERY_NEAR
    return False


def _says_which(one: Statement, other: Statement) -> bool:
    """Whether predicate and object alone tell what is meant: the one there is, or one by name."""
    if is_single(one.predicate) and one.predicate not in ("favourite", "opinion"):
        return True
    by_name = one.fact.object[:1].isupper() and other.fact.object[:1].isupper()
    return one.predicate in _NAMED and by_name


def at_odds(older: Statement, newer: Statement) -> bool:
    """Whether both cannot be so at once."""
    if not _comparable(older, newer) or older.fact.valid_to is not None:
        return False
    if _opposed(older, newer) or _denied(older, newer) or _excluded(older, newer):
        return True
    return _one_at_a_time(older, newer) or _counted(older, newer)


def speaks_against(opinion: Statement, taste: Statement) -> bool:
    """Whether an opinion on a thing and a liking of that thing are at odds."""
    held = {opinion.stance, taste.stance} == {"positive", "negative"}
    of_it = meant(opinion.fact.subject.name) == taste.wording.object
    return held and of_it and opinion.fact.aspect == taste.fact.aspect


def _comparable(one: Statement, other: Statement) -> bool:
    """Events happen again, and what is over says nothing of what is."""
    if "event" in (one.fact.type, other.fact.type):
        return False
    if one.fact.aspect.casefold() != other.fact.aspect.casefold():
        return False
    ends, begins = one.fact.valid_to, other.fact.valid_from
    apart = ends is not None and begins is not None and ends <= begins
    ends, begins = other.fact.valid_to, one.fact.valid_from
    return not (apart or (ends is not None and begins is not None and ends <= begins))


def _same_names(one: Wording, other: Wording) -> bool:
    """In one order: "Anna introduced Ben" is not "Ben introduced Anna"."""
    both = set(one.names) & set(other.names)
    return [n for n in one.names if n in both] == [n for n in other.names if n in both]


def _opposed(one: Statement, other: Statement) -> bool:
    """Liked and disliked; or, of two things, each preferred to the other."""
    if one.predicate == other.predicate == "prefers":
        return one.wording.words == other.wording.words and is_turned(
            one.fact.text, other.fact.text
        )
    if not {one.predicate, other.predicate} <= _STANCED:
        return False
    opposed = {one.stance, other.stance} == {"positive", "negative"}
    if one.fact.object[:1].isupper() != other.fact.object[:1].isupper():
        return False  # The band, and the piece.
    return opposed and bool(one.wording.object) and one.wording.object == other.wording.object


def _denied(one: Statement, other: Statement) -> bool:
    """The same, said to be so and not to be so."""
    if one.wording.denied == other.wording.denied:
        return False
    extra = one.wording.asserted ^ other.wording.asserted
    if extra & NARROWING or one.stance:
        return False
    return extra <= LIGHT and one.wording.figures == other.wording.figures


def _excluded(one: Statement, other: Statement) -> bool:
    """Of two, one together with somebody else, or alone; or one that the other does not eat."""
    if TOGETHER.issuperset((one.predicate, other.predicate)):
        names = set(one.wording.names), set(other.wording.names)
        return all(names) and names[0].isdisjoint(names[1])
    if one.predicate == other.predicate == "lives_with":
        return ("nobody" in one.wording.object) != ("nobody" in other.wording.object)
    return any(
        _is_alone_of(first, second) or _is_not_eaten(first, second)
        for first, second in ((one, other), (other, one))
    )


def _is_alone_of(status: Statement, other: Statement) -> bool:
    alone = status.predicate == "relationship_status" and bool(status.wording.object & _ALONE)
    return alone and other.predicate in TOGETHER and not other.wording.denied


def _is_not_eaten(diet: Statement, other: Statement) -> bool:
    meatless = diet.predicate == "diet" and bool(diet.wording.words & _MEATLESS)
    eats = other.predicate in ("likes", "eats") or bool(other.wording.words & meant("eats"))
    eats = eats and bool(other.wording.object & _MEAT)
    liked = other.stance != "negative" and not other.wording.denied
    return meatless and not diet.wording.denied and eats and liked


def _one_at_a_time(one: Statement, other: Statement) -> bool:
    """Two values of what there is one of; a more exact one is no other one."""
    name = one.predicate
    if name != other.predicate or not is_single(name) or name == "opinion":
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
    """The same of other amounts."""
    if one.predicate != other.predicate or one.wording.figures == other.wording.figures:
        return False
    if not (one.wording.figures and other.wording.figures) or one.wording.kin != other.wording.kin:
        return False
    if not (counts(one.fact.text) and counts(other.fact.text)):
        return False
    about = without_figures(one.fact.text)
    return bool(about) and about == without_figures(other.fact.text)

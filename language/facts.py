"""Facts as plain values: predicates, candidates, known facts, judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from language.slugs import slug_of

# The predicate of a candidate that amends a known fact without naming it; it is never stored.
UNRESOLVED = ""
# The predicate of a text that is stored in its own words. The rules of judging do not know it, so
# later messages neither change nor end such a fact.
NOTE = "note"
# The confidence of a statement about a name that the same messages do not introduce.
HEARSAY = 0.5
# The confidence of a home, an employer or a spouse if nothing says that it is one ("we moved to
# Proxmox"), and the least of what is recalled and takes the place of another.
UNSURE, SURE = 0.6, 0.7
# The object of a denied marriage or partnership.
SPOUSE = "spouse"
# The aspect of a denial of whatever something new takes the place of: the phone before another.
OTHERS = "others"
# The object of studies that have ended, whatever was studied.
STUDIES = "studies"


@dataclass(frozen=True, slots=True)
class Predicate:
    """
    Attributes:
        single: A subject has one at a time: a new value replaces the old one.
        category: The default category of its facts.
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


# Attributes of which a subject has one by nature, as the last words of a predicate that is not
# listed: "shoe_size", "blood_type".
_ONE_BY_NATURE = tuple(
    f"_{words}"
    for words in (
        "size age height weight length width birthday birthdate birth_date birth_year anniversary"
        " birthplace date_of_birth place_of_birth gender pronouns surname first_name last_name"
        " full_name middle_name maiden_name given_name family_name mother_tongue native_language"
        " hometown nationality blood_type blood_group star_sign zodiac_sign zodiac timezone"
        " time_zone eye_color eye_colour hair_color hair_colour skin_type marital_status"
        " employment_status bedtime wake_up_time wakeup_time iq gpa bmi salary income rent"
        " net_worth resting_heart_rate blood_pressure dominant_hand handedness"
        " fuel gearbox rooms wifi internet broadband electricity energy school_year"
        " bank insurer provider supplier expires ends expiry_date expiration_date"
        " landlord landlady doctor gp dentist therapist home_address postcode zip"
        " zip_code plate gym"
    ).split()
)


def is_single(name: str) -> bool:
    """Whether a subject has one at a time.

    Of a predicate that is not listed, many are allowed, except where the attribute that it names is
    single by nature.
    """
    listed = PREDICATES.get(name)
    return listed.single if listed else f"_{name}".endswith(_ONE_BY_NATURE)


def category_of(name: str) -> str:
    listed = PREDICATES.get(name)
    return listed.category if listed else ""


FactType = Literal["fact", "preference", "opinion", "event"]
TYPES: tuple[FactType, ...] = ("fact", "preference", "opinion", "event")

# The name of a speaker whose name is not known.
USER = "User"


@dataclass(frozen=True, slots=True)
class Words:
    """Characters `start` to `end` (exclusive) of message `turn`, counted from 0."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Thing:
    """Someone or something a statement is about; `kind` is one of `Entity.Kind`."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement, which makes sense without the messages around it.

    Attributes:
        text: A sentence in the third person: "User lives in Lisbon".
        predicate: What is said of the subject, in snake_case, as `PREDICATES` lists
            them; others are allowed.
        object: What completes it: "Lisbon".
        thing: What the object is, where it is somebody or something with a name: the statement is
            then also an edge of the graph.
        aspect: The facet it holds for, where the same may be said differently of others:
            "generics" of opinions on TypeScript. Empty: of the whole.
        stance: positive, negative, neutral or mixed, where it is an opinion or a preference.
        negated: It says that this is not, or no longer, so.
        corrects: It says that what was said before was wrong all along.
        valid_from: Since when it is true; of an event, when it happens. None: when it was said.
        valid_to: Until when; None while there is no end.
        confidence: 0 to 1.
        category: A path such as "home/pets".
        words: The exact words it rests on, at least one stretch.
    """

    type: FactType
    subject: Thing
    predicate: str
    object: str
    text: str
    words: tuple[Words, ...]
    thing: Thing | None = None
    aspect: str = ""
    stance: str = ""
    negated: bool = False
    corrects: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float = 0.8
    category: str = ""
    tags: tuple[str, ...] = field(default_factory=tuple)


class Verdict(StrEnum):
    """The five judgements.

    Attributes:
        ADD: Nothing like it is known.
        UPDATE: It takes the place of a fact: the matter changed, was refined or was wrong.
        DELETE: It says that a fact is no longer true, and puts nothing in its place.
        NONE: It is known already; its words support the fact there is.
        COEXIST: Another facet of the same matter, true beside it.
    """

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"
    COEXIST = "COEXIST"


class Change(StrEnum):
    """How an UPDATE or a DELETE changes what was known.

    Attributes:
        SHIFT: It was true until now.
        REFINEMENT: It stays true, and more is known.
        CORRECTION: It was never true.
    """

    SHIFT = "shift"
    REFINEMENT = "refinement"
    CORRECTION = "correction"


@dataclass(frozen=True, slots=True, eq=False)
class KnownFact:
    """An active fact as the rules see it. Two are equal only if they are one object.

    Attributes:
        key: The caller's id of the fact.
        single: Its subject has one fact with this predicate and aspect at a time.
        said_order: Sorts facts by when they were said.
        said_in: The source and id of the conversation that it was learnt from; of a fact that was
            not learnt from messages, when it was recorded.

    The other attributes are those of `Candidate`.
    """

    key: int
    type: FactType
    subject: Thing
    predicate: str
    object: str
    text: str
    said_order: tuple[datetime, str, str, int, int]
    said_in: tuple[str, str] | datetime
    thing: Thing | None = None
    aspect: str = ""
    stance: str = ""
    category: str = ""
    confidence: float = 0.8
    tags: tuple[str, ...] = ()
    single: bool = False
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that a candidate is judged beside; `similarity` is the cosine of the texts."""

    fact: KnownFact
    similarity: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    Attributes:
        fact: The one that is updated, deleted or repeated; None for ADD and COEXIST.
        text: The text of the fact after an UPDATE; empty: the candidate's text.
        why: The reason in a few words, shown in the history.
    """

    verdict: Verdict
    candidate: Candidate
    fact: KnownFact | None = None
    change: Change = Change.SHIFT
    text: str = ""
    why: str = ""


# A statement with one predicate may deny or replace a fact with another one of its family.
_FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"works_at", "works_as", "reports_to"}),
    frozenset({"studies", "studies_at", "learns"}),
    frozenset({"likes", "dislikes", "opinion", "prefers", "does", "uses", "favourite", "learns"}),
    frozenset({"owns", "drives", "has_pet", "uses"}),
    frozenset({"married_to", "engaged_to", "partner", "relationship_status", "lives_with"}),
    frozenset({"plans", "wants"}),
    # Selling the shop ends running it.
    frozenset({"owns", "works_as"}),
    # "Bert died" ends having a dog of that name, or a husband.
    frozenset({"has_pet", "married_to", "engaged_to", "partner"}),
    frozenset({"diet", "does", "dislikes", "likes", "allergic_to"}),
    frozenset({"friend_of", "knows", "colleague_of", "lives_with"}),
)

# Judges a candidate beside the facts about its subject; None if the rule does not apply.
Rule = Callable[[Candidate, Sequence[Known]], Judgement | None]


def is_unsure(said: Candidate | KnownFact) -> bool:
    """Whether it is too uncertain to be recalled or to replace anything: its owner is asked."""
    return said.confidence < SURE and said.predicate != UNRESOLVED


def is_about(candidate: Candidate, fact: KnownFact) -> bool:
    return slug_of(fact.subject.name) == slug_of(candidate.subject.name)


def are_related(candidate: Candidate, fact: KnownFact) -> bool:
    pair = {candidate.predicate, fact.predicate}
    return len(pair) == 1 or any(pair <= family for family in _FAMILIES)


def has_one_value(candidate: Candidate) -> bool:
    """Also of "my phone is a Pixel 9", whose facet is the phone: of that there is one.

    So there is of when somebody gets up, and of a leave.
    """
    is_the_one = candidate.predicate in ("owns", "does") and candidate.aspect != ""
    return is_the_one or is_single(candidate.predicate)


def rival_of(candidate: Candidate, about: Sequence[Known]) -> KnownFact | None:
    """The fact in the place of a candidate whose predicate allows one value at a time."""
    if not has_one_value(candidate):
        return None
    for one in about:
        if one.fact.predicate == candidate.predicate and one.fact.aspect == candidate.aspect:
            return one.fact
    return None


def updated(
    candidate: Candidate, fact: KnownFact, why: str, change: Change = Change.SHIFT, text: str = ""
) -> Judgement:
    if candidate.corrects and change is Change.SHIFT:
        change, why = Change.CORRECTION, "replaced by a correction"
    return Judgement(Verdict.UPDATE, candidate, fact, change, text, why)


def repeated(candidate: Candidate, fact: KnownFact) -> Judgement:
    return Judgement(Verdict.NONE, candidate, fact, why="it is known already")

"""Candidates that do not name what they are about: pronouns, and amendments ("typo: Dordrecht").

If a message names the old value, the fact with that value is meant. Otherwise the latest fact
with a value of the same kind is: a figure with such a unit, a day, a name spelt alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from language.english import text_of, words
from language.english.facts.people import ABSENT, RELATIONS, Relation, may_be_one_of
from language.english.facts.vocabulary import DAY, FIGURE, MONTH, NUMBER_WORD, UNIT, WEEKDAY
from language.english.judging import denies, may_end, spelt_alike, words_of
from language.facts import (
    HEARSAY,
    USER,
    Candidate,
    Change,
    Judgement,
    Known,
    KnownFact,
    Thing,
    Verdict,
    is_about,
)


def has_pronoun_subject(candidate: Candidate) -> bool:
    """Whether the subject is a pronoun for a person whom the message does not name."""
    return candidate.subject.name in ABSENT


@dataclass(frozen=True, slots=True)
class _Someone:
    name: str
    relation: Relation


def resolve_pronoun(
    candidate: Candidate, nearby: Sequence[KnownFact], latest: Sequence[KnownFact]
) -> Candidate | None:
    """The candidate about the person whom its conversation names; None if it is not just one.

    Args:
        nearby: Active facts from the candidate's own conversation, latest first.
        latest: Active facts of the same scope, latest first: they say who is a sister or a friend.
    """
    feminine = candidate.subject.name == ABSENT[0]
    people = _named(latest)
    fitting = [
        one
        for fact in nearby
        for one in _in(fact, people)
        if not one.relation.animal and one.relation.feminine in (feminine, None)
    ]
    names = {one.name for one in fitting}
    return _said_of(candidate, *names) if len(names) == 1 else None


def _said_of(candidate: Candidate, name: str) -> Candidate:
    text = candidate.text.replace(candidate.subject.name, name, 1)
    return replace(candidate, subject=Thing(name, "person"), text=text)


def _named(facts: Sequence[KnownFact]) -> dict[str, Relation]:
    """The relations of people whom facts name as a sister, a friend or the like."""
    found: dict[str, Relation] = {}
    for fact in facts:
        if fact.thing is not None and fact.thing.kind in ("person", "pet"):
            for role in fact.tags:
                if role in RELATIONS:
                    found.setdefault(fact.thing.name, RELATIONS[role])
    return found


def _in(fact: KnownFact, people: dict[str, Relation]) -> Iterator[_Someone]:
    """The people whom a fact names, "User's mum" too."""
    names = [fact.subject.name]
    if fact.thing is not None:
        names.append(fact.thing.name)
    for name in names:
        role = name.rpartition("'s ")[2] if "'s " in name else ""
        relation = people.get(name) or RELATIONS.get(role)
        if relation is not None:
            yield _Someone(name, relation)


def named_kin(candidate: Candidate, latest: Sequence[KnownFact]) -> Candidate:
    """The candidate about Kim, if it is about "User's sister" and nobody else is known as one."""
    owner, _, role = candidate.subject.name.rpartition("'s ")
    theirs = [one for one in latest if one.subject.name == owner]
    kin = [one for one in theirs if role in one.tags or may_be_one_of(one.object, role)]
    names = {one.thing.name if one.thing is not None else "" for one in kin}
    return candidate if len(names) != 1 or "" in names else _said_of(candidate, *names)


_DAY = re.compile(rf"(?i){DAY}|\b{MONTH} \d{{4}}\b")
_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?! ?(?:€|euros?|dollars?|km|kg|m\b))")
_OFTEN = re.compile(r"(?i)\b(?:(?:once|twice|\w+ times) (?:a|per|every) \w+|daily)\b")
_TIME = re.compile(r"(?i)\b\d{1,2}(?::\d\d(?: ?[ap]m\b)?| ?(?:[ap]m|o'clock)\b)")
_FIGURE = re.compile(FIGURE, re.IGNORECASE)
_NUMBER = re.compile(rf"(?i)\d+(?:[.,:']\d+)*k?|\b{NUMBER_WORD}\b")
_UNIT = re.compile(rf"(?i)(?<=[\d\s]){UNIT}\Z")
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+(?: (?:(?:de|van|von|the|of) )?[A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_NAMED = frozenset(
    "name lives_in from works_at studies_at graduated_from has_pet has_child has_sibling"
    " has_parent has_relative friend_of colleague_of reports_to married_to engaged_to partner"
    " knows lives_with visited speaks learns favourite".split()
)
# A plan without a day in its text gets the new day appended.
_NO_DAY = ""
_NOUNS = frozenset(
    "allergic_to likes dislikes studies learns has_condition takes diet works_as favourite".split()
)
# These do not end: family, origin and what has happened.
_LASTING = frozenset(
    "dislikes did visited from graduated_from has_parent has_child has_sibling has_relative".split()
)
_HAD_THERE = words_of("account subscription membership internship job contract plan course")
# What one thing in place of another does not change.
_UNCHANGED = _LASTING | {"likes", "favourite"}
# So many facts back a correction may reach; by this factor a new figure may be off.
_RECENT = 4
_FAR = 3.0
# Words that occur in statements on any topic.
_COMMON = words_of(text_of("topicless"))

# Words that name the topic of a figure by other words than the fact does.
_HINTS = {
    "salary": words_of("raise rise pay paid wage salary earn bonus promotion"),
    "rent": words_of("landlord landlady rent lease"),
    "weight": words_of("weigh weighed scales lost gained kilo pounds"),
    "takes": words_of("dose dosage doctor gp"),
    "age": words_of("birthday turn turned old"),
}

_Kind = Callable[[str], list[re.Match[str]]]


def judge_amendment(candidate: Candidate, known: Sequence[Known]) -> Judgement:
    """Update or delete the fact that is meant; NONE if no fact fits.

    Args:
        known: Active facts about the subject and those closest by meaning.
    """
    rule = "instructions"  # "Never mention it" is one, and denies nothing.
    facts = [one.fact for one in known if one.fact.category == rule or not denies(one.fact.text)]
    facts.sort(key=lambda fact: (fact.said_order, fact.key), reverse=True)
    mine = [fact for fact in facts if is_about(candidate, fact)]
    others = [fact for fact in facts if fact not in mine]
    if candidate.negated:
        return _ended(candidate, mine)
    if candidate.aspect:
        # Of what there is one at a time, each has their own: a brother's move from Leeds.
        if candidate.subject.name != USER and not candidate.corrects:
            others = [fact for fact in others if not fact.single]
        if candidate.corrects:
            replaced = _replaced(candidate, mine + others)
        else:
            held = [fact for fact in mine + others if _may_change(candidate, fact)]
            replaced = _replaced(candidate, held)
        return _had_anyhow(candidate) if replaced.verdict is Verdict.NONE else replaced
    return _of_its_kind(candidate, mine, others)


def _dropped(candidate: Candidate) -> Judgement:
    return Judgement(Verdict.NONE, candidate, why="it is not known what it is about")


def _had_anyhow(candidate: Candidate) -> Judgement:
    """What took the place of something unknown is known now, if it is a thing that one has."""
    if candidate.thing is None:
        return _dropped(candidate)
    text = f"{candidate.subject.name} owns {candidate.object}"
    owned = replace(candidate, predicate="owns", text=text, aspect="", thing=None)
    return Judgement(Verdict.ADD, owned, why="new fact")


def _ended(candidate: Candidate, facts: Sequence[KnownFact]) -> Judgement:
    """Delete the fact that has all words of what is given up."""
    named = words_of(candidate.object) - _COMMON
    doing = re.fullmatch(r"\w+ing", candidate.object) is not None
    if candidate.type == "opinion":
        facts = [fact for fact in facts if fact.type in ("opinion", "preference")]
    for fact in facts:
        whole = doing or fact.predicate in ("smokes", "drinks_alcohol")
        said = words_of(fact.text if whole else f"{fact.object} {fact.aspect}")
        names = words_of(" ".join(_NAME.findall(candidate.object)))
        placed = names and names <= words_of(fact.object) and named - names <= _HAD_THERE
        if named and (named <= said or placed):
            if fact.predicate in _LASTING and candidate.type != "opinion":
                continue
            if not may_end(candidate.text, fact.predicate, fact.category):
                continue
            change = Change.CORRECTION if candidate.corrects else Change.SHIFT
            return Judgement(
                Verdict.DELETE, candidate, fact, change, why="it is said to be so no longer"
            )
    return _dropped(candidate)


def _may_change(candidate: Candidate, fact: KnownFact) -> bool:
    """Whether "from the train to the bus" may be meant of it: not of a view, nor "train tickets".

    Of somebody else only if the message names them.
    """
    if fact.predicate in _UNCHANGED or fact.type in ("opinion", "event"):
        return False
    whose = words_of(fact.subject.name)
    if not (is_about(candidate, fact) or (whose - words_of(USER)) & words_of(candidate.text)):
        return False
    if not candidate.aspect.islower():
        return True
    if fact.predicate == "owns":
        return candidate.thing is not None
    after = re.search(rf"(?<!\w){re.escape(candidate.aspect)}(?: (\w+)|\Z)", fact.object)
    return after is None or after[1] is None or after[1].lower() in words("function")


def _replaced(candidate: Candidate, facts: Sequence[KnownFact]) -> Judgement:
    """Replace an old value that the message names: "not Siemens but Bosch"."""
    old = words_of(candidate.aspect) - _COMMON or words_of(candidate.aspect)
    for fact in facts:
        if not old or not old <= words_of(f"{fact.object} {fact.text}"):
            continue
        span = _literal(fact.text, candidate.aspect) or _same_kind(candidate.object, fact)
        if span is not None:
            return _amended(candidate, fact, span, facts)
    return _dropped(candidate)


def _literal(text: str, value: str) -> str | None:
    found = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE)
    return found[0] if found else None


def _of_its_kind(
    candidate: Candidate, mine: Sequence[KnownFact], others: Sequence[KnownFact]
) -> Judgement:
    named = words_of(candidate.text) - _COMMON - words_of(candidate.object)
    found: list[tuple[float, KnownFact, str]] = []
    for age, fact in enumerate([*mine, *others]):
        span = _same_kind(candidate.object, fact)
        if span is None or span.lower() == candidate.object.lower():
            continue
        topic = len(named & (words_of(fact.text) | _HINTS.get(fact.predicate, frozenset())))
        likely = _likelihood(candidate, fact, span, topic=topic, age=age, other=fact in others)
        if likely > 0:
            found.append((likely, fact, span))
    if not found:
        return _dropped(candidate)
    _, fact, span = max(found, key=lambda one: one[0])
    return _amended(candidate, fact, span, [*mine, *others])


def _likelihood(
    candidate: Candidate, fact: KnownFact, span: str, *, topic: int, age: int, other: bool
) -> float:
    """How likely the message means this fact; 0: it does not."""
    value = candidate.object
    alike = spelt_alike(span, value)
    if value.islower() and span == fact.object and _NUMBER.search(value) is None:
        return 1.0 if _is_sure(candidate) and (age == 0 or alike) else 0
    if span == _NO_DAY and not topic:
        return 0
    unit = _unit_of(value) != "" and _unit_of(value) == _unit_of(span)
    named = _NAME.fullmatch(value) is not None and _WEEKDAY.search(value) is None
    sure = _is_sure(candidate)
    if other and not (topic or (alike and named and sure)):
        return 0
    if named:
        if not (alike or (sure and age < _RECENT)):
            return 0
    elif not (topic or (unit and _are_near(span, value)) or (sure and age < _RECENT)):
        return 0
    return 1 + 2 * topic + unit + alike * named * 2 - 0.1 * age


def _is_sure(candidate: Candidate) -> bool:
    """Whether the message says outright that it corrects something."""
    return candidate.corrects and candidate.confidence > HEARSAY


def _unit_of(value: str) -> str:
    found = _UNIT.search(value)
    unit = next(iter(words_of(found[0])), "") if found else ""
    return _UNITS.get(unit, unit)


_UNITS = {"kilo": "kg", "kilos": "kg", "pound": "lb", "pounds": "lb", "lbs": "lb", "mins": "minute"}


def _are_near(one: str, other: str) -> bool:
    first, second = _amount(one), _amount(other)
    if not first or not second:
        return True
    return max(first, second) / min(first, second) <= _FAR


def _amount(value: str) -> float | None:
    found = re.search(r"\d[\d,']*(?:\.\d+)?", value)
    return float(re.sub(r"[,']", "", found[0])) if found else None


def _same_kind(value: str, fact: KnownFact) -> str | None:
    """The part of a fact's object or text that is of the same kind as the value."""
    for spans in _KINDS:
        if not spans(value):
            continue
        for text in (fact.object, fact.text):
            found = [match[0] for match in spans(text)]
            if found:
                return _best(found, value)
        return _NO_DAY if spans is _DAYS and fact.predicate == "plans" else None
    if value.islower() and fact.predicate in _NOUNS and fact.object.islower():
        return fact.object
    if fact.predicate in _NAMED and _NAME.fullmatch(value) and _NAME.match(fact.object):
        return fact.object
    return None


def _best(found: Sequence[str], value: str) -> str:
    unit = _unit_of(value)
    return next((one for one in found if unit and _unit_of(one) == unit), found[-1])


def _all(pattern: re.Pattern[str]) -> _Kind:
    return lambda text: list(pattern.finditer(text))


_DAYS = _all(_DAY)
_KINDS: tuple[_Kind, ...] = (_DAYS, *map(_all, (_WEEKDAY, _OFTEN, _YEAR, _TIME, _FIGURE)))


def _amended(
    candidate: Candidate, fact: KnownFact, span: str, facts: Sequence[KnownFact]
) -> Judgement:
    value = _fitted(candidate.object, span)
    text = f"{fact.text} on {value}" if span == _NO_DAY else _put(fact.text, span, value)
    obj = fact.object if span == _NO_DAY else _put(fact.object, span, value)
    wrong = candidate.corrects or _is_sooner(candidate, fact)
    change = Change.CORRECTION if wrong else Change.SHIFT
    if (span != _NO_DAY and _is_known(value, fact, facts)) or text == fact.text:
        return Judgement(Verdict.DELETE, candidate, fact, change, why="something else was meant")
    why = "replaced by a correction" if candidate.corrects else "it has changed"
    return Judgement(
        Verdict.UPDATE, _as_said_of(candidate, fact, obj), fact, change, text=text, why=why
    )


def _is_sooner(candidate: Candidate, fact: KnownFact) -> bool:
    """Whether a plan moves to an earlier day: the later one was never true, so it is corrected."""
    now, before = candidate.valid_from, fact.valid_from
    return now is not None and before is not None and now < before


def _is_known(value: str, beside: KnownFact, facts: Sequence[KnownFact]) -> bool:
    return any(
        fact.predicate == beside.predicate and words_of(value) <= words_of(fact.object)
        for fact in facts
        if fact is not beside
    )


def _as_said_of(candidate: Candidate, fact: KnownFact, obj: str) -> Candidate:
    return replace(
        candidate,
        type=fact.type,
        subject=fact.subject,
        predicate=fact.predicate,
        object=obj,
        aspect=fact.aspect,
        stance=fact.stance,
        thing=Thing(obj, fact.thing.kind) if fact.thing else None,
        category=fact.category,
        tags=fact.tags,
        confidence=fact.confidence,
        valid_from=candidate.valid_from or (fact.valid_from if fact.predicate == "plans" else None),
    )


def _fitted(value: str, span: str) -> str:
    """Keep the unit and the month of the old value: "35" for "34 years" gives "35 years"."""
    if _unit_of(span) and not _unit_of(value) and _NUMBER.fullmatch(value):
        return _NUMBER.sub(value, span, count=1)
    if re.fullmatch(r"(?:the )?\d{1,2}(?:st|nd|rd|th)", value) and _DAY.search(span):
        return re.sub(r"\b\d{1,2}(?:st|nd|rd|th)?\b", value.removeprefix("the "), span, count=1)
    return value


def _put(text: str, span: str, value: str) -> str:
    return re.sub(
        rf"(?<!\w){re.escape(span)}(?!\w)", lambda _: value, text, count=1, flags=re.IGNORECASE
    )

"""Rules of judging for one matter each: denials, the past, work, tastes, instructions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from language.english import kinds_of
from language.english.judging import denies, overlap, same, says_more, words_of
from language.facts import (
    OTHERS,
    SPOUSE,
    STUDIES,
    Candidate,
    Change,
    Judgement,
    Known,
    KnownFact,
    Verdict,
    are_related,
    is_single,
    repeated,
    rival_of,
    updated,
)

# Denials of these are facts by themselves: "User does not smoke".
_WORTH_KNOWING = frozenset(
    "diet smokes drinks_alcohol takes has_sibling has_child drives does speaks".split()
)
_ALONE = frozenset({"single", "divorced", "separated", "widowed"})
_COUPLES = frozenset({"married_to", "engaged_to", "partner"})
_VEHICLES = frozenset({"car", "van", "truck", "motorbike", "motorcycle", "bike"})
_AFTER_IT = re.compile(r"(?<=\w) (?:to|for|in|at|on|by|with|from|because|when)\b")
_PAST = re.compile(
    r"\b(?:used to|was|were|had|did|\w+ed|taught|drove|went|ran|led|wrote|kept|spoke"
    r"|took|knew|ate|drank)\b"
)


def judge_denial(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Delete the fact that a statement denies."""
    related = [
        one.fact for one in about if are_related(candidate, one.fact) and not denies(one.fact.text)
    ]
    hit = [fact for fact in related if _is_denied_by(candidate, fact)]
    if not hit:
        return None
    closest = max(
        hit,
        key=lambda fact: (
            fact.predicate == candidate.predicate,
            overlap(fact.object, candidate.object),
        ),
    )
    change = Change.CORRECTION if candidate.corrects else Change.SHIFT
    return Judgement(
        Verdict.DELETE, candidate, closest, change, why="it is said to be so no longer"
    )


def _is_denied_by(candidate: Candidate, fact: KnownFact) -> bool:
    if (
        candidate.predicate == fact.predicate
        and is_single(fact.predicate)
        and candidate.predicate in ("smokes", "drinks_alcohol")
    ):
        return True
    if candidate.aspect == OTHERS:
        return _is_alternative(candidate, fact)
    if candidate.object == SPOUSE:
        return fact.predicate in _COUPLES
    if candidate.object == STUDIES:
        return fact.predicate == candidate.predicate
    if candidate.object in ("job", "my job", "their job"):
        return fact.predicate in ("works_at", "works_as")
    if fact.predicate == "drives" and words_of(candidate.object) & words_of(" ".join(_VEHICLES)):
        return True
    if fact.predicate == "dislikes" and candidate.predicate != "dislikes":
        return False
    denied = words_of(candidate.object)
    return bool(denied) and (
        denied <= words_of(f"{fact.object} {fact.text}")
        or (words_of(fact.object) <= denied and not _is_of_another_thing(candidate.object, fact))
    )


def _is_of_another_thing(denied: str, fact: KnownFact) -> bool:
    """Of a boat, "my boat engine"; of one's car, "my dad's car"; not "my Honda Civic"."""
    last = _AFTER_IT.split(denied)[0].split()[-1]
    part = last.islower() and not words_of(last) <= words_of(fact.object)
    return fact.predicate == "owns" and (part or re.search("['’]s ", denied) is not None)


def _is_alternative(candidate: Candidate, fact: KnownFact) -> bool:
    """Whether a fact is of what the thing in the candidate takes the place of."""
    kinds = kinds_of(candidate.object)
    of_a_thing = fact.predicate in ("uses", "owns") and not same(candidate.object, fact.object)
    return of_a_thing and not kinds.isdisjoint(kinds_of(fact.object) | kinds_of(fact.aspect))


def judge_denied_before(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    for one in about:
        if (
            one.fact.predicate == candidate.predicate
            and denies(one.fact.text)
            and same(one.fact.object, candidate.object)
        ):
            return repeated(candidate, one.fact)
    return None


def judge_denial_of_nothing(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Add a denial that contradicts no known fact if it is worth knowing by itself."""
    if candidate.predicate not in _WORTH_KNOWING:
        return Judgement(Verdict.NONE, candidate, why="nothing of the kind was known")
    rival = rival_of(candidate, about)
    if rival is not None:
        return updated(candidate, rival, "it has changed")
    return Judgement(Verdict.ADD, candidate, why="new fact")


def judge_past(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "I used to live in Rome" ends a fact that says so, or is added as a past fact."""
    if candidate.valid_to is None or not _is_past(candidate.text):
        return None
    for one in about:
        if (
            one.fact.predicate == candidate.predicate
            and overlap(one.fact.object, candidate.object) >= 1
        ):
            return Judgement(Verdict.DELETE, candidate, one.fact, why="it is over")
    return Judgement(Verdict.ADD, candidate, why="it was so before")


def _is_past(text: str) -> bool:
    return _PAST.search(text) is not None


_NO_EMPLOYER = frozenset({"retired", "unemployed", "freelance", "self-employed", "freelancer"})
_BY_ONESELF = re.compile(
    r"(?i)\b(?:freelanc\w*|self-employed|unemployed|retired|between jobs|out of work)\b"
)
_ROLE = re.compile(r" as (?:an? )?(?P<role>[^,]+)\Z")


def judge_work(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Judge an employer or a role beside the known ones."""
    if candidate.predicate not in ("works_at", "works_as"):
        return None
    known_work = {
        one.fact.predicate: one.fact
        for one in reversed(about)
        if one.fact.predicate in ("works_at", "works_as") and not one.fact.aspect
    }
    employer, role = known_work.get("works_at"), known_work.get("works_as")
    if candidate.predicate == "works_as":
        return _new_role(candidate, employer, role)
    return None if candidate.aspect else _new_employer(candidate, employer, role)


def _new_role(
    candidate: Candidate, employer: KnownFact | None, role: KnownFact | None
) -> Judgement | None:
    named = _role_of(employer)
    if candidate.object.lower() in _NO_EMPLOYER:
        before = employer or role
        return _same_or_changed(candidate, before) if before else None
    if employer is None or (role is not None and not named):
        return None
    if named and (words_of(candidate.object) <= words_of(named)):
        return repeated(candidate, employer)
    if not named:
        return (
            updated(candidate, employer, "replaced by a correction") if candidate.corrects else None
        )
    text = f"{_ROLE.sub('', employer.text)} as {_role_words(candidate)}"
    merged = replace(candidate, predicate="works_at", object=employer.object, text=text, thing=None)
    return updated(merged, employer, "the role has changed")


def _same_or_changed(candidate: Candidate, before: KnownFact) -> Judgement:
    if before.predicate == candidate.predicate and same(before.object, candidate.object):
        return repeated(candidate, before)
    return updated(candidate, before, "it has changed")


def _role_words(candidate: Candidate) -> str:
    named = _ROLE.search(candidate.text)
    return f"{_article(named['role'])}{named['role']}" if named else candidate.object


def _article(noun: str) -> str:
    if noun.split()[0] in ("the", "their"):
        return ""
    return "an " if noun[:1].lower() in "aeio" else "a "


def _role_of(employer: KnownFact | None) -> str:
    named = _ROLE.search(employer.text) if employer else None
    return named["role"] if named else ""


def _new_employer(
    candidate: Candidate, employer: KnownFact | None, role: KnownFact | None
) -> Judgement | None:
    if employer is None:
        return _first_employer(candidate, role)
    role_before, role_now = _role_of(employer), _ROLE.search(candidate.text)
    if _same_place(employer.object, candidate.object):
        return _same_employer(candidate, employer, role_now["role"] if role_now else "")
    if _is_field(employer) and not _is_field_name(candidate):
        return updated(candidate, employer, "it is said more exactly", Change.REFINEMENT)
    text = (
        f"{candidate.text} as {_article(role_before)}{role_before}"
        if role_before and role_now is None and not candidate.corrects
        else ""
    )
    return updated(candidate, employer, "it has changed", text=text)


def _first_employer(candidate: Candidate, role: KnownFact | None) -> Judgement | None:
    """Judge an employer where only a role is known: a new job ends self-employment."""
    if role is None:
        return None
    if _BY_ONESELF.search(role.object):
        return updated(candidate, role, "it has changed")
    named = _ROLE.search(candidate.text)
    if named is None or not overlap(named["role"], role.object):
        return None
    return updated(candidate, role, "more is known", Change.REFINEMENT)


def _same_employer(candidate: Candidate, employer: KnownFact, role: str) -> Judgement:
    before = words_of(_role_of(employer))
    if not role or (before and words_of(role) <= before):
        return repeated(candidate, employer)
    if before and not before <= words_of(role):
        return updated(candidate, employer, "the role has changed")
    return updated(candidate, employer, "more is known", Change.REFINEMENT)


def _same_place(one: str, other: str) -> bool:
    return same(one, other) or says_more(one, other) or says_more(other, one)


def _is_field(fact: KnownFact) -> bool:
    """Whether it names a field and no employer: "User works in tech"."""
    return " works in " in f" {fact.text}"


def _is_field_name(candidate: Candidate) -> bool:
    return " works in " in f" {candidate.text}"


_INSTRUCTIONS = "instructions"
_STANCED = frozenset({"likes", "dislikes", "opinion", "prefers"})


def judge_stance(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """A like or dislike repeats or replaces the known one of the same thing."""
    if candidate.predicate not in _STANCED or not candidate.stance or candidate.type == "opinion":
        return None
    for one in about:
        fact = one.fact
        if _prefers_other(candidate, fact):
            return updated(candidate, fact, "the view has changed")
        if (
            fact.predicate not in _STANCED
            or not fact.stance
            or not same(_topic_of(fact), candidate.object)
        ):
            continue
        turned = candidate.predicate == "prefers" and _is_turned(candidate.object, fact.object)
        if fact.stance == candidate.stance and not turned:
            return repeated(candidate, fact)
        return updated(candidate, fact, "the view has changed")
    return None


def _prefers_other(candidate: Candidate, fact: KnownFact) -> bool:
    """ "I prefer light mode" after "I prefer dark mode", which differ in that word alone."""
    both = candidate.predicate == fact.predicate == "prefers" and fact.category != _INSTRUCTIONS
    one, other = candidate.object.lower().split(), fact.object.lower().split()
    if not both or candidate.stance != fact.stance or len(one) != len(other):
        return False
    differing = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return len(differing) == 1 and not kinds_of(differing[0][0]).isdisjoint(
        kinds_of(differing[0][1])
    )


def _topic_of(fact: KnownFact) -> str:
    """The thing a taste is about; of an opinion on a thing without a name, its aspect."""
    return fact.aspect if fact.predicate == "opinion" and fact.aspect else fact.object


def judge_instruction(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "English again from now on" replaces the instruction of the same aspect."""
    if candidate.category != _INSTRUCTIONS or not candidate.aspect:
        return None
    for one in about:
        fact = one.fact
        if fact.category == _INSTRUCTIONS and fact.aspect == candidate.aspect:
            if same(fact.object, candidate.object):
                return repeated(candidate, fact)
            return updated(candidate, fact, "it has changed")
    return None


def _is_turned(one: str, other: str) -> bool:
    """ "Tabs to spaces" says the opposite of "spaces to tabs", in the same words."""
    return words_of(one.split()[0]) != words_of(other.split()[0])


def judge_opinion(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """An opinion repeats or replaces one of the same aspect, and coexists with those of others."""
    if candidate.type != "opinion":
        return None
    opinions = [one.fact for one in about if one.fact.predicate == candidate.predicate]
    for fact in opinions:
        if fact.aspect == candidate.aspect:
            if fact.stance == candidate.stance:
                return repeated(candidate, fact)
            return updated(candidate, fact, "the view has changed")
    for one in about:
        liked = one.fact.predicate in ("likes", "dislikes")
        if liked and candidate.aspect and same(one.fact.object, candidate.aspect):
            if one.fact.stance == candidate.stance:
                return repeated(candidate, one.fact)
            return updated(candidate, one.fact, "the view has changed")
    return Judgement(Verdict.COEXIST, candidate, why="another aspect of it") if opinions else None


def judge_opinion_of_speaker(candidate: Candidate, known: Sequence[Known]) -> Judgement:
    """ "Rust is terrible" has Rust as its subject, and yet replaces "User loves Rust"."""
    for one in known:
        fact = one.fact
        liked = fact.predicate in ("likes", "dislikes") and same(
            fact.object, candidate.subject.name
        )
        if liked and not candidate.aspect:
            if fact.stance == candidate.stance:
                return repeated(candidate, fact)
            return updated(candidate, fact, "the view has changed")
    return Judgement(Verdict.ADD, candidate, why="new fact")


def judge_relationship(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Partner, engaged and married replace each other; so do they and being single."""
    steps = ("partner", "engaged_to", "married_to")
    alone = candidate.predicate == "relationship_status" and candidate.object in _ALONE
    if (engaged := _wedding_of(candidate, about)) is not None:
        return engaged
    if candidate.predicate not in steps and not alone:
        return None
    for one in about:
        if one.fact.predicate in steps if alone else one.fact.object in _ALONE:
            return updated(candidate, one.fact, "it has changed")
    for one in about:
        fact = one.fact
        if (
            fact.predicate in steps
            and fact.predicate != candidate.predicate
            and overlap(fact.object, candidate.object) >= 1
        ):
            later = steps.index(candidate.predicate) > steps.index(fact.predicate)
            return (
                updated(candidate, fact, "it has changed")
                if later or candidate.corrects
                else repeated(candidate, fact)
            )
    return None


def _wedding_of(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "We got married", of those who were engaged."""
    if candidate.predicate != "relationship_status" or candidate.object != "married":
        return None
    for one in about:
        if one.fact.predicate == "engaged_to":
            text = one.fact.text.replace("engaged", "married")
            married = replace(
                candidate,
                predicate="married_to",
                object=one.fact.object,
                text=text,
                thing=one.fact.thing,
            )
            return updated(married, one.fact, "it has changed")
    return None

"""Judging by rules: the verdict on a candidate, given the known facts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from language.english.facts.vocabulary import NUMBER_WORD
from language.english.judging import (
    denies,
    overlap,
    same,
    says_more,
    spelt_alike,
    without_figures,
    words_of,
)
from language.english.judging.topic_rules import (
    judge_denial,
    judge_denial_of_nothing,
    judge_denied_before,
    judge_instruction,
    judge_opinion,
    judge_opinion_of_speaker,
    judge_past,
    judge_relationship,
    judge_stance,
    judge_work,
)
from language.english.judging.unresolved_candidates import judge_amendment
from language.facts import (
    HEARSAY,
    UNRESOLVED,
    Candidate,
    Change,
    Judgement,
    Known,
    KnownFact,
    Rule,
    Thing,
    Verdict,
    has_one_value,
    is_about,
    is_single,
    is_unsure,
    repeated,
    rival_of,
    updated,
)

# From this cosine on, two statements with one subject and predicate say the same.
SAME_BY_MEANING = 0.95
_MOST_OF_IT = 0.6

# Verbs of plans: only the thing planned identifies a plan.
_STEPS = words_of("sit buy get move visit go learn run take trip travel holiday fly train study")
_HOUSEHOLD = frozenset(
    {"has_pet", "has_child", "has_sibling", "has_parent", "has_relative", "friend_of", "owns"}
)
# How the object of what somebody never does begins.
_NOT = ("not ", "never ")
_IS_COUNTED = re.compile(rf"(?i)(?:\d+|{NUMBER_WORD}) ")
_MEATLESS = re.compile(r"(?i)\b(?:vegetarian|vegan|plant-based|pescatarian|pescetarian)\b")
_MEATY = frozenset(
    {"meat", "fish", "red meat", "pork", "beef", "chicken", "dairy", "eggs", "seafood", "poultry"}
)


def judge_by_rules(candidate: Candidate, known: Sequence[Known]) -> Judgement:
    """The verdict of the first rule that has one; ADD if none has.

    A judgement names one fact. If a candidate contradicts several, it names the closest, and the
    others stay active.

    Args:
        known: Active facts, the closest by meaning first.
    """
    if candidate.predicate == UNRESOLVED:
        return judge_amendment(candidate, known)
    about = [one for one in known if is_about(candidate, one.fact)]
    if candidate.confidence <= HEARSAY and not about and not _is_met(candidate, known):
        return Judgement(Verdict.NONE, candidate, why="it is not known who that is")
    # "We call Rocket Biscuit now" counts where Rocket is known.
    if candidate.negated or (candidate.predicate == "name" and _is_met(candidate, known)):
        return _judged(candidate, about, known)
    sure = [one for one in about if not is_unsure(one.fact)]
    return _unsure(candidate, about) or _judged(candidate, sure, known)


def _judged(candidate: Candidate, about: Sequence[Known], known: Sequence[Known]) -> Judgement:
    for rule in _RULES_OF_DENIALS if candidate.negated else _RULES:
        judgement = rule(candidate, about)
        if judgement is not None:
            return judgement
    if candidate.type == "opinion":
        return judge_opinion_of_speaker(candidate, known)
    if candidate.predicate == "name":
        return _renamed(candidate, known)
    return Judgement(Verdict.ADD, candidate, why="new fact")


def _is_met(candidate: Candidate, known: Sequence[Known]) -> bool:
    """Whether the subject is the object of a known fact."""
    name = candidate.subject.name
    return any(same(one.fact.object, name) or f" called {name}" in one.fact.text for one in known)


def _unsure(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Store an unsure value beside the known one; said with evidence, it takes its place."""
    for one in about:
        if one.fact.predicate == candidate.predicate and same(one.fact.object, candidate.object):
            if is_unsure(candidate):
                return repeated(candidate, one.fact)
            if is_unsure(one.fact):
                return updated(candidate, one.fact, "it is certain now", Change.REFINEMENT)
    if is_unsure(candidate):
        return Judgement(Verdict.ADD, candidate, why="it may be of another kind")
    return None


def _single(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    if not has_one_value(candidate) or candidate.type == "opinion":
        return None
    rival = rival_of(candidate, about)
    if rival is None:
        return _diet(candidate, about)
    if denies(rival.text):
        return updated(candidate, rival, "it has changed")
    if same(rival.object, candidate.object) or says_more(rival.object, candidate.object):
        return repeated(candidate, rival)
    if says_more(candidate.object, rival.object) and not candidate.corrects:
        return updated(candidate, rival, "it is said more exactly", Change.REFINEMENT)
    return updated(candidate, rival, "it has changed")


def _diet(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    if candidate.predicate != "diet":
        return None
    for one in about:
        denied = one.fact.predicate == "diet" and denies(one.fact.text)
        if denied and _MEATLESS.search(candidate.text) and one.fact.object.lower() in _MEATY:
            return updated(candidate, one.fact, "it is said more exactly", Change.REFINEMENT)
        if candidate.object.lower() not in _MEATY:
            continue
        if one.fact.predicate == "diet" and _MEATLESS.search(one.fact.text):
            return updated(candidate, one.fact, "it has changed")
    return None


def _renamed(candidate: Candidate, known: Sequence[Known]) -> Judgement:
    """ "Rusty is now called Comet" changes the fact that Rusty is the object of."""
    before = candidate.subject.name
    for one in known:
        fact = one.fact
        called = f" called {before}" in fact.object
        if called or (same(fact.object, before) and before in fact.text):
            named = fact.thing or candidate.thing
            thing = Thing(candidate.object, named.kind if named else "person")
            renamed = replace(
                candidate,
                subject=fact.subject,
                predicate=fact.predicate,
                object=fact.object.replace(before, candidate.object)
                if called
                else candidate.object,
                text=fact.text.replace(before, candidate.object),
                thing=thing,
            )
            return updated(renamed, fact, "it has another name")
    return Judgement(Verdict.ADD, candidate, why="new fact")


def _many(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    if is_single(candidate.predicate) or candidate.type == "opinion":
        return None
    alike = [one for one in about if _is_alike(candidate, one.fact)]
    for one in alike:
        judgement = _beside(candidate, one)
        if judgement is not None:
            return judgement
    return None


def _is_alike(candidate: Candidate, fact: KnownFact) -> bool:
    """Of one predicate and facet. What is owned is one's phone or guitar, and a thing as well."""
    facet = candidate.predicate == "owns" or fact.aspect == candidate.aspect
    return facet and fact.predicate == candidate.predicate


def _redated(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "I got the year wrong: we married in 2008": the same fact with another start."""
    if not candidate.corrects or candidate.valid_from is None:
        return None
    for one in about:
        fact = one.fact
        if (
            fact.predicate == candidate.predicate
            and same(fact.object, candidate.object)
            and _is_moved(candidate, fact)
        ):
            return updated(candidate, fact, "replaced by a correction", Change.CORRECTION)
    return None


def _put_right(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "Sorry, pistachios" corrects one of many allergies: the one spelt alike, or the latest."""
    if not candidate.corrects or is_single(candidate.predicate) or candidate.type == "opinion":
        return None
    alike = [
        one.fact for one in about if _is_alike(candidate, one.fact) and not denies(one.fact.text)
    ]
    if not alike or any(same(fact.object, candidate.object) for fact in alike):
        return None
    meant = max(
        alike,
        key=lambda fact: (spelt_alike(fact.object, candidate.object), fact.said_order, fact.key),
    )
    return updated(candidate, meant, "replaced by a correction", Change.CORRECTION)


def _beside(candidate: Candidate, one: Known) -> Judgement | None:
    """Judge it beside one fact with the same subject and predicate."""
    fact = one.fact
    if denies(fact.text):
        # "User does not have any kids", "a dog": one that is there now.
        there = candidate.predicate in _HOUSEHOLD and (
            fact.object in ("kids", "children", "pets", "siblings")
            or words_of(fact.object) <= words_of(candidate.text)
        )
        changed = there or same(fact.object, candidate.object)
        return updated(candidate, fact, "it has changed") if changed else None
    if same(fact.object, candidate.object):
        return _said_again(candidate, fact)
    moved = candidate.predicate == "plans" and _is_moved(candidate, fact)
    if moved and overlap(candidate.object, fact.object) >= 1:
        return updated(candidate, fact, "it is at another time")
    if candidate.predicate in _HOUSEHOLD:
        return _household(candidate, fact)
    if _excludes(candidate, fact):
        return updated(candidate, fact, "it has changed")
    if candidate.predicate in ("did", "visited", "likes", "dislikes", "speaks", "allergic_to"):
        return _repeated(candidate, one)
    return _figures(candidate, fact) or _repeated(candidate, one)


def _said_again(candidate: Candidate, fact: KnownFact) -> Judgement:
    """Judge a candidate with the object of a known fact: a repetition, unless it says more."""
    if candidate.predicate == "plans" and _is_moved(candidate, fact):
        return updated(candidate, fact, "it is at another time")
    if candidate.predicate != "did" and says_more(candidate.text, fact.text):
        return updated(candidate, fact, "more is known", Change.REFINEMENT)
    return repeated(candidate, fact)


def _figures(candidate: Candidate, fact: KnownFact) -> Judgement | None:
    """Judge objects that differ in their figures, or where one says more than the other."""
    if says_more(candidate.object, fact.object):
        return updated(candidate, fact, "it is said more exactly", Change.REFINEMENT)
    if says_more(fact.object, candidate.object):
        return repeated(candidate, fact)
    about = without_figures(candidate.object)
    counted = candidate.object[:1].isdigit() and fact.object[:1].isdigit()
    if (about or counted) and about == without_figures(fact.object):
        return updated(candidate, fact, "the figure has changed")
    return None


def _excludes(candidate: Candidate, fact: KnownFact) -> bool:
    """A person lives alone or with others, and has one way of getting to work."""
    if candidate.predicate == "lives_with":
        return "nobody" in (candidate.object, fact.object)
    to_work = _TO_WORK.search(candidate.object) and _TO_WORK.search(fact.object)
    return candidate.predicate == "does" and bool(to_work)


_TO_WORK = re.compile(r"\bto work\b")


def _is_moved(candidate: Candidate, fact: KnownFact) -> bool:
    """Whether the candidate gives a plan another day."""
    now, before = candidate.valid_from, fact.valid_from
    return now is not None and before is not None and abs(now - before) >= timedelta(days=1)


def _household(candidate: Candidate, fact: KnownFact) -> Judgement | None:
    """ "A dog named Rex" refines "a dog"; a dog with another name is another fact."""
    about = without_figures(candidate.object)
    if _IS_COUNTED.match(candidate.object) and about == without_figures(fact.object):
        return updated(candidate, fact, "the figure has changed")
    unnamed_before, unnamed_now = not fact.object[:1].isupper(), not candidate.object[:1].isupper()
    if unnamed_before and words_of(fact.object) <= words_of(candidate.text):
        return updated(candidate, fact, "more is known", Change.REFINEMENT)
    if unnamed_now and words_of(candidate.object) <= words_of(fact.text):
        return repeated(candidate, fact)
    if candidate.corrects and not unnamed_before and spelt_alike(fact.object, candidate.object):
        return updated(candidate, fact, "replaced by a correction", Change.CORRECTION)
    return None


def _repeated(candidate: Candidate, one: Known) -> Judgement | None:
    if one.similarity >= SAME_BY_MEANING and denies(one.fact.text) == candidate.negated:
        return repeated(candidate, one.fact)
    return None


def _drinks_again(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "I drink wine again" replaces "does not drink alcohol"."""
    if candidate.predicate != "does" or not _ALCOHOL.search(candidate.text):
        return None
    for one in about:
        if one.fact.predicate == "drinks_alcohol" and denies(one.fact.text):
            return updated(candidate, one.fact, "it has changed")
    return None


_ALCOHOL = re.compile(r"\bdrinks .*\b(?:wine|beers?|alcohol|whisky|gin|cocktails?|cider)\b")


def _plan_done(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "We bought the house" replaces the plan to buy one."""
    if candidate.predicate in (
        "plans",
        "wants",
        "likes",
        "dislikes",
        "opinion",
        "favourite",
        "prefers",
        "does",
    ):
        return None
    done = words_of(f"{candidate.text} {candidate.object}")
    for one in about:
        fact = one.fact
        if fact.predicate not in ("plans", "wants") and not _IN_TRAINING.search(fact.text):
            continue
        plan = words_of(fact.object) - _STEPS
        bought = False
        if candidate.predicate == "owns" or candidate.object.startswith("bought "):
            wanted = words_of(_BESIDES.sub("", fact.object)) - _STEPS
            what = words_of(_BESIDES.sub("", candidate.object.removeprefix("bought "))) - _STEPS
            if _is_another_thing(candidate, wanted):
                continue
            # "I bought the boat": the one that was wanted.
            bought = candidate.predicate == "owns" and what <= wanted
        if plan and (bought or len(plan & done) / len(plan) >= _MOST_OF_IT):
            return updated(candidate, fact, "the plan was carried out")
    return None


def _is_another_thing(candidate: Candidate, wanted: frozenset[str]) -> bool:
    """Whether what was bought is none of what was wanted: a toy boat, or the cover of one."""
    what = _BESIDES.sub("", candidate.object.removeprefix("bought "))
    toy = words_of(" ".join(_TOY.findall(what)))
    head = words_of(what.split()[-1]) if what.islower() else frozenset()
    return bool(toy - wanted) or not head <= wanted


_IN_TRAINING = re.compile(r"\b(?:trains?|study|studies) for ")
# "A house with a garden" is a house.
_BESIDES = re.compile(r"(?i) (?:with|for|in|near|by|on|at|that|which|to|last|this|when)\b.*")
_TOY = re.compile(r"\b(?:toy|model|miniature|inflatable|paper|Lego|\w+-controlled)(?= [a-z])")
_TAKEN_UP = frozenset({"does", "diet", "visited", "did", "owns"})


def _taken_up_or_given_up(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """ "I eat pork again" after "I don't eat pork", and the other way round."""
    avoids = candidate.object.startswith(_NOT)
    for one in about:
        fact = one.fact
        if fact.predicate not in ("does", "diet") or candidate.predicate not in _TAKEN_UP:
            continue
        if fact.object.startswith(_NOT) == avoids:
            continue
        avoided, done = (candidate, fact) if avoids else (fact, candidate)
        what = words_of(avoided.object.split(maxsplit=2)[-1])
        if what and what <= words_of(done.object):
            return updated(candidate, fact, "it has changed")
    return None


_RULES: tuple[Rule, ...] = (
    judge_past,
    _taken_up_or_given_up,
    _redated,
    judge_work,
    judge_opinion,
    judge_relationship,
    judge_instruction,
    judge_stance,
    _single,
    _put_right,
    _drinks_again,
    _many,
    _plan_done,
)
_RULES_OF_DENIALS: tuple[Rule, ...] = (judge_denial, judge_denied_before, judge_denial_of_nothing)

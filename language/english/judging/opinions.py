"""Tastes, opinions and instructions: a new view replaces one of the same aspect only."""

from __future__ import annotations

from collections.abc import Sequence

from language.candidate import Candidate
from language.english.judging.verdicts import repeated, updated
from language.english.judging.word_overlap import same, words_of
from language.judging import Judgement, Known, KnownFact, Verdict

_INSTRUCTIONS = "instructions"
_STANCED = frozenset({"likes", "dislikes", "opinion", "prefers"})


def judge_stance(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """A like or dislike repeats or replaces the known one of the same thing."""
    if candidate.predicate not in _STANCED or not candidate.stance or candidate.type == "opinion":
        return None
    for one in about:
        fact = one.fact
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
    return Judgement(Verdict.ADD, candidate, why="nothing like it is known")

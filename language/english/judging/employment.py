"""Employer and role: often one statement, and each may change without the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from language.candidate import Candidate
from language.english.judging.verdicts import repeated, updated
from language.english.judging.word_overlap import overlap, same, says_more, words_of
from language.judging import Change, Judgement, Known, KnownFact

_NO_EMPLOYER = frozenset({"retired", "unemployed", "freelance", "self-employed", "freelancer"})
_BY_ONESELF = re.compile(
    r"\b(?:freelanc\w*|self-employed|unemployed|retired|between jobs|out of work)\b", re.IGNORECASE
)
_ROLE = re.compile(r" as (?:an? )?(?P<role>[^,]+)\Z")


def judge_work(candidate: Candidate, about: Sequence[Known]) -> Judgement | None:
    """Employer and role are often one statement: each may come alone later."""
    if candidate.predicate not in ("works_at", "works_as"):
        return None
    held = {
        one.fact.predicate: one.fact
        for one in reversed(about)
        if one.fact.predicate in ("works_at", "works_as") and not one.fact.aspect
    }
    employer, role = held.get("works_at"), held.get("works_as")
    if candidate.predicate == "works_as":
        return _new_role(candidate, employer, role)
    return None if candidate.aspect else _new_employer(candidate, employer, role)


def _new_role(
    candidate: Candidate, employer: KnownFact | None, role: KnownFact | None
) -> Judgement | None:
    told = _role_of(employer)
    if candidate.object.lower() in _NO_EMPLOYER:
        before = employer or role
        return _same_or_changed(candidate, before) if before else None
    if employer is None or (role is not None and not told):
        return None
    if told and (words_of(candidate.object) <= words_of(told)):
        return repeated(candidate, employer)
    if not told:
        return updated(candidate, employer, "it was put right") if candidate.corrects else None
    text = f"{_ROLE.sub('', employer.text)} as {_role_words(candidate)}"
    merged = replace(candidate, predicate="works_at", object=employer.object, text=text, thing=None)
    return updated(merged, employer, "the role has changed")


def _same_or_changed(candidate: Candidate, before: KnownFact) -> Judgement:
    if before.predicate == candidate.predicate and same(before.object, candidate.object):
        return repeated(candidate, before)
    return updated(candidate, before, "it has changed")


def _role_words(candidate: Candidate) -> str:
    told = _ROLE.search(candidate.text)
    return f"{_article(told['role'])}{told['role']}" if told else candidate.object


def _article(noun: str) -> str:
    if noun.split()[0] in ("the", "their"):
        return ""
    return "an " if noun[:1].lower() in "aeio" else "a "


def _role_of(employer: KnownFact | None) -> str:
    told = _ROLE.search(employer.text) if employer else None
    return told["role"] if told else ""


def _new_employer(
    candidate: Candidate, employer: KnownFact | None, role: KnownFact | None
) -> Judgement | None:
    if employer is None:
        return _first_employer(candidate, role)
    told_before, told_now = _role_of(employer), _ROLE.search(candidate.text)
    if _same_place(employer.object, candidate.object):
        return _same_employer(candidate, employer, told_now["role"] if told_now else "")
    if _is_field(employer) and not _is_field_name(candidate):
        return updated(candidate, employer, "it is said more exactly", Change.REFINEMENT)
    text = (
        f"{candidate.text} as {_article(told_before)}{told_before}"
        if told_before and told_now is None and not candidate.corrects
        else ""
    )
    return updated(candidate, employer, "it has changed", text=text)


def _first_employer(candidate: Candidate, role: KnownFact | None) -> Judgement | None:
    """Beside a role alone: whoever worked for themselves does no longer."""
    if role is None:
        return None
    if _BY_ONESELF.search(role.object):
        return updated(candidate, role, "it has changed")
    told = _ROLE.search(candidate.text)
    if told is None or not overlap(told["role"], role.object):
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
    """ "User works in tech" names no employer."""
    return " works in " in f" {fact.text}"


def _is_field_name(candidate: Candidate) -> bool:
    return " works in " in f" {candidate.text}"

"""Employer and role: one statement often names both, and each may change without the other."""

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
        return updated(candidate, employer, "it was put right") if candidate.corrects else None
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

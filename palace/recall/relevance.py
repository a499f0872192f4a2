"""Relevance: whether anything here has to do with the question. No match must mean no hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from language.english.question_subject import asks_for_all, is_personal, subject_of
from palace.recall.candidates import Candidates
from palace.recall.floor import COSINE_BY_CHANCE, FEW, Closeness, floor_for
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.raw_sql import among
from palace.recall.semantic import Ids, Meaning, Scores, look_up

# Where the question is close, a drawer is with this cosine or a word of it. More would cost: where
# words that neighbours share had to make up for it, BEAM lost 1.2 points of turn@10.
MIN_COSINE = 0.15
# A question without a subject finds what holds this share of its words.
MIN_COVERAGE = 0.4
# A drawer's time, or the wish it states, suits the question from here on.
MIN_SUITING = 0.5
# From this strength on a wish is an instruction to the assistant: "always answer in French".
INSTRUCTION = 0.94
# From this cosine on, a question is the one that is asked here.
SAME_QUESTION = 0.7
# "What have we talked about?" has no subject: any drawer may be a hit.
ASKS_FOR_ALL = "asks for all"

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Relevance:
    """Which candidates may be hits, and how that was decided.

    Attributes:
        log_odds: That the palace can answer the question; below `least` it is refused.
        exempt: Why the floor does not hold for this question; empty where it does.
    """

    taken: Mask
    closeness: Closeness
    log_odds: float
    least: float
    exempt: str

    @property
    def is_refused(self) -> bool:
        """Whether nothing in the palace is close to the question."""
        return not self.exempt and self.log_odds < self.least


def relevant(
    query: Query,
    candidates: Candidates,
    values: Mapping[str, Scores],
    meaning: Meaning,
    words: Words,
    excluded: Mask,
    silent: Mask,
) -> Relevance:
    """Which candidates may be hits.

    Where the palace is close to the question: those that share words with it, are close in
    meaning, or stand beside such a one; those of the time it asks about; and lasting wishes, where
    it asks for advice. Where it is not: standing instructions, where it asks for advice, and the
    very same question asked before.

    Args:
        values: The candidates' features, by name.
        excluded: Candidates that the caller has already; like the silent ones they are no evidence
            that an answer is here.
        silent: Candidates that only ask or quote.
    """
    # The adapted vector finds answers better; whether anything is about the question at all is
    # decided better with the question's own.
    cosines = look_up(meaning.drawers, meaning.as_asked, candidates.drawers)
    of_that_time = values["time.said"] >= MIN_SUITING
    near = _closeness(query, candidates, cosines, meaning, words, excluded | silent)
    floor = floor_for(query, near)
    exempt = _exemption(query, near, of_that_time)
    found = Relevance(of_that_time, near, floor.log_odds(near), floor.least, exempt)
    wishes = values["preference.stated"]
    if found.is_refused:
        taken = (wishes >= INSTRUCTION) | (silent & (cosines >= SAME_QUESTION))
    else:
        close = _close(candidates, cosines, words)
        taken = close | of_that_time | (wishes >= MIN_SUITING) | (exempt == ASKS_FOR_ALL)
    return Relevance(taken, near, found.log_odds, found.least, exempt)


def _closeness(
    query: Query,
    candidates: Candidates,
    cosines: Scores,
    meaning: Meaning,
    words: Words,
    excluded: Mask,
) -> Closeness:
    """
    Args:
        cosines: Of the candidates with the question as it is; 0 for one without a vector.
    """
    others = candidates.drawers[~excluded]
    best = look_up(meaning.drawers, meaning.best, others, missing=meaning.mean)
    covered, known = _coverage(query, words, others, candidates.drawers[excluded])
    return Closeness(
        cosine=float(cosines[~excluded].max(initial=0.0)),
        deviations=float(meaning.standardised(best).max(initial=0.0)),
        words=covered,
        known=known,
        number=meaning.number,
        personal=is_personal(query),
        has_vectors=bool(cosines.any()),
    )


def _coverage(query: Query, words: Words, drawers: Ids, excluded: Ids) -> tuple[float, float]:
    """The largest share of the subject in one of these drawers, and in all but the excluded."""
    subject = subject_of(query) or frozenset(query.terms)
    terms = [term for term in words.terms if term.name in subject]
    whole = sum(term.idf for term in terms) + (len(subject) - len(terms)) * words.missing
    covered = np.zeros(len(drawers), dtype=np.float32)
    known, excluded = 0.0, np.sort(excluded)
    for term in terms:
        covered += term.idf * among(drawers, term.drawers)
        if not len(excluded) or not among(term.drawers, excluded).all():
            known += term.idf
    return (float(covered.max(initial=0.0)) / whole, known / whole) if whole else (0.0, 0.0)


def _exemption(query: Query, near: Closeness, of_that_time: Mask) -> str:
    """Why a question need not be close in meaning or words to what it asks for."""
    if asks_for_all(query):
        return "time" if of_that_time.any() else ASKS_FOR_ALL
    if not subject_of(query):
        return "no subject" if _finds_something(near) or of_that_time.any() else ""
    asks_of_memory = query.intent.asks_user or query.intent.asks_assistant
    return "time" if asks_of_memory and of_that_time.any() else ""


def _finds_something(near: Closeness) -> bool:
    chance = COSINE_BY_CHANCE * log(max(near.number / FEW, 1))
    return near.cosine >= MIN_COSINE + chance or near.words >= MIN_COVERAGE


def _close(candidates: Candidates, cosines: Scores, words: Words) -> Mask:
    """Those close to the question themselves, and those beside them."""
    close = (words.at(candidates.drawers) > 0) | (cosines >= MIN_COSINE)
    found = np.sort(candidates.drawers[close])
    beside = among(candidates.before, found) | among(candidates.after, found)
    return np.asarray(close | beside, dtype=np.bool_)

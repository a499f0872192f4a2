"""Relevance: whether anything here has to do with the question. No match must mean no hit."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.rows import among
from palace.recall.semantic import Meaning, Scores, look_up

# Of a few dozen unrelated drawers the closest has a cosine below this ...
MIN_COSINE = 0.15
# ... and the closest of more is closer by chance: by so much for each e-fold above that number.
FEW, MORE_BY_CHANCE = 60, 0.035
# A drawer that holds this share of the question's words has to do with it.
MIN_COVERAGE = 0.4
# A drawer's time, or the wish it states, suits the question from here on.
MIN_SUITING = 0.5


def relevant(
    candidates: Candidates, suiting: Scores, wishes: Scores, meaning: Meaning, words: Words
) -> npt.NDArray[np.bool_]:
    """Which candidates may be hits; none when nothing in the palace is about the question.

    Otherwise those that share a word with it, are close in meaning, or stand beside such a one;
    those of the time it asks about; and lasting wishes, where it asks for advice.

    Args:
        suiting: How well each candidate's time suits the question, 0 to 1.
        wishes: How much each states a wish that the question asks for, 0 to 1.
    """
    # Where an answer would be is told by the learnt adapter; whether anything is about the
    # question at all is told better without.
    cosines = look_up(meaning.drawers, meaning.as_asked, candidates.drawers)
    of_that_time = suiting >= MIN_SUITING
    if not (_is_about(cosines, meaning.number, words) or of_that_time.any()):
        return np.zeros(len(candidates), dtype=np.bool_)
    matching = words.at(candidates.drawers) > 0
    matching |= cosines >= MIN_COSINE
    found = np.sort(candidates.drawers[matching])
    beside = among(candidates.before, found) | among(candidates.after, found)
    return np.asarray(matching | beside | of_that_time | (wishes >= MIN_SUITING), dtype=np.bool_)


def _is_about(cosines: Scores, number: int, words: Words) -> bool:
    """
    Args:
        cosines: Of the candidates with the question as it is; 0 for one without a vector.
        number: How many drawers the palace has.
    """
    if not cosines.any():  # Without vectors, words are all there is.
        return bool(len(words.drawers))
    chance = MORE_BY_CHANCE * log(max(number / FEW, 1))
    return bool(cosines.max() >= MIN_COSINE + chance or words.coverage >= MIN_COVERAGE)

"""Summaries without a language model: sentences of the conversation itself, word for word.

Which ones: SumBasic (Nenkova and Vanderwende, "The impact of frequency on summarization", 2005).
A sentence is worth the mean probability of its terms; once it is taken, its terms are worth less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palace.episodes.material import Material, Said
from palace.episodes.summary import Summary
from palace.facts.extraction.sentences import BLOT, Sentence, sentences_of
from palace.indexing.analyzer import analyze

MOST_SENTENCES = 3
SUMMARY_CHARS = 420
MOST_DECISIONS = 8

# Of a longer conversation the sentences of so many messages are weighed: from its beginning, its
# end, and in even steps between. Of each the first ones, which say what it is about.
_WEIGHED = 48
_EDGE = 16
_WEIGHED_CHARS = 600
_SENTENCES_A_MESSAGE = 4
_LEAST_CHARS, _MOST_CHARS = 20, 240
_LEAST_TERMS = 3
# What was asked tells more of what a conversation is about than what was answered.
_ANSWERED = 0.6
_OPENING = 1.6

_DECISION = re.compile(
    r"\b(?:(?:i|we)(?:'ve| have)? (?:finally |just |both |all )?"
    r"(?:decided|agreed|settled on|opted|chose|picked)"
    r"|(?:i|we)(?:'ll| will|'re going to| am going to|'m going to) (?:go|stick|stay) with"
    r"|(?:i'm|i am|we're|we are) (?:going|sticking|staying) with"
    r"|let's (?:go|stick|stay) with|let's settle on"
    r"|(?:the|our|my|final) (?:final )?decision (?:is|was)|decided:|decision:|it(?:'s| is) decided"
    r"|(?:it was|was|is|been) (?:decided|agreed) (?:that|to|on))\b",
    re.IGNORECASE,
)
_MAY_DECIDE = re.compile(
    r"deci[ds]|agreed|settle|opted|chose|picked|\b(?:go|going|stick|sticking|stay|staying) with",
    re.IGNORECASE,
)
# Just before the cue: it is no decision yet.
_UNDECIDED = re.compile(
    r"\b(?:if|whether|unless|until|before|once|when|should|could|might|would|never|not|wish)\b"
    r"(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"[.!?…]+[\"'”’)]*|[\"'”’)]+")


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    text: str
    terms: Counter[str]
    weight: float


def summarise(material: Material) -> Summary:
    """Its most telling sentences, one a line; decisions by the words that announce them."""
    spoken = [said for said in material.said if said.role in ("user", "assistant")]
    chosen = _chosen(list(_candidates(spoken)))
    text = "\n".join(one.text for one in sorted(chosen, key=lambda one: one.place))
    decisions = dict.fromkeys(_decisions(spoken))
    return Summary(
        text or _beginning(material),
        tuple(decisions)[:MOST_DECISIONS],
        material.entities,
        material.tools,
    )


def _candidates(spoken: Sequence[Said]) -> Iterator[_Candidate]:
    opened = False
    place = 0
    for said in _sampled(spoken):
        asks = said.role == "user" or bool(said.speaker)
        for text in _beginnings(said):
            terms = analyze(text)
            if len(terms) >= _LEAST_TERMS:
                weight = 1.0 if asks else _ANSWERED
                yield _Candidate(place, text, terms, weight if opened else weight * _OPENING)
                opened = opened or asks
                place += 1


def _sampled(spoken: Sequence[Said]) -> Sequence[Said]:
    if len(spoken) <= _WEIGHED:
        return spoken
    between = spoken[_EDGE:-_EDGE]
    step = len(between) / (_WEIGHED - 2 * _EDGE)
    middle = [between[int(at * step)] for at in range(_WEIGHED - 2 * _EDGE)]
    return [*spoken[:_EDGE], *middle, *spoken[-_EDGE:]]


def _beginnings(said: Said) -> Iterator[str]:
    read = said.text[:_WEIGHED_CHARS]
    whole = said.whole and len(read) == len(said.text)
    taken = 0
    for sentence in sentences_of(read):
        if BLOT in sentence.text or (not whole and sentence.end >= len(read) - 1):
            continue
        text = _verbatim(said.text, sentence)
        if _LEAST_CHARS <= len(text) <= _MOST_CHARS:
            yield text
            taken += 1
        if taken == _SENTENCES_A_MESSAGE:
            return


def _verbatim(text: str, sentence: Sentence) -> str:
    """As it was written, with the signs that end it."""
    closing = _CLOSING.match(text, sentence.end)
    return text[sentence.start : closing.end() if closing else sentence.end]


def _chosen(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    counts = Counter(term for one in candidates for term in one.terms)
    total = sum(counts.values())
    worth = {term: count / total for term, count in counts.items()}
    left, chosen, room = list(candidates), list[_Candidate](), SUMMARY_CHARS
    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=lambda one: (_score(one, worth), -one.place))
        left.remove(best)
        if len(best.text) > room:
            continue
        chosen.append(best)
        room -= len(best.text) + 1
        for term in best.terms:
            worth[term] **= 2
    return chosen


def _score(one: _Candidate, worth: dict[str, float]) -> float:
    return one.weight * sum(worth[term] for term in one.terms) / len(one.terms)


def _decisions(spoken: Sequence[Said]) -> Iterator[str]:
    for said in spoken:
        if not _MAY_DECIDE.search(said.text):
            continue
        for sentence in sentences_of(said.text):
            cut_off = not said.whole and sentence.end >= len(said.text) - 1
            if _decides(sentence) and not cut_off:
                yield _verbatim(said.text, sentence)


def _decides(sentence: Sentence) -> bool:
    if sentence.question or len(sentence.text) > 2 * _MOST_CHARS:
        return False
    cue = _DECISION.search(sentence.text)
    return cue is not None and not _UNDECIDED.search(sentence.text, 0, cue.start())


def _beginning(material: Material) -> str:
    """Where no sentence will do, the first words there are."""
    for said in material.said:
        line = " ".join(said.text.split())
        if line:
            return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1].rstrip()}…"
    return material.title

"""Summaries without a language model: sentences of the conversation itself, word for word.

Which ones: those of the messages closest in meaning to the whole conversation (Rossiello, Basile
and Semeraro, "Centroid-based text summarization through compositionality of word embeddings",
2017), and not too close to one another (Carbonell and Goldstein, "The use of MMR", 1998).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from language.english.facts.sentences import BLOT, Sentence, sentences_of
from language.english.message_traits import decides, may_decide
from palace.knowledge.episodes.material import Material, Said, Summary
from palace.storage.indexing.vector_index import Vector

MOST_SENTENCES = 3
MOST_DECISIONS = 8

# Of a message the first sentences, which say what it is about, are looked at.
_LOOKED_AT_CHARS = 600
_LOOKED_AT = 4
_LEAST_CHARS, _MOST_CHARS = 20, 240
# A message of so many characters says as much as a longer one.
_FULL_CHARS = 160
# What was asked tells more of what a conversation is about than what was answered.
_ANSWERED = 0.6
_OPENING = 1.3
# How much likeness to what was chosen already counts against a message.
_ALIKE = 0.5

_CLOSING = re.compile(r"[.!?…]+[\"'”’)]*|[\"'”’)]+")


def summarise(material: Material) -> Summary:
    """Its most telling sentences, one a line; decisions by the words that announce them.

    Its vector is the mean of the messages that the sentences are from: they have been embedded.
    """
    spoken = [said for said in material.said if said.role in ("user", "assistant")]
    chosen = _chosen(spoken)
    vectors = [said.vector for at in chosen if (said := spoken[at]).vector is not None]
    return Summary(
        "\n".join(chosen[at] for at in sorted(chosen)) or _beginning(material),
        tuple(dict.fromkeys(_decisions(spoken)))[:MOST_DECISIONS],
        material.entities,
        material.tools,
        vector=_normalised(np.sum(vectors, axis=0)) if len(vectors) == len(chosen) > 0 else None,
    )


def _chosen(spoken: Sequence[Said]) -> dict[int, str]:
    """Places of up to three messages, with the sentence that stands for each."""
    worth = _worth(spoken)
    likeness = np.zeros(len(spoken), np.float32)
    chosen: dict[int, str] = {}
    while len(chosen) < MOST_SENTENCES and np.isfinite(worth).any():
        at = int(np.argmax(worth - _ALIKE * likeness))
        worth[at] = -np.inf
        sentence = _telling(spoken[at])
        if sentence and sentence not in chosen.values():
            chosen[at] = sentence
            likeness = np.maximum(likeness, _cosines(spoken, spoken[at].vector))
    return chosen


def _worth(spoken: Sequence[Said]) -> Vector:
    """How much of the conversation each message says; minus infinity for those not weighed."""
    substance = np.array([_substance(said) for said in spoken], np.float32)
    told = [
        weight * said.vector
        for weight, said in zip(substance, spoken, strict=True)
        if said.vector is not None
    ]
    if told:
        substance *= _cosines(spoken, _normalised(np.sum(told, axis=0)))
        substance[[said.vector is None for said in spoken]] = -np.inf
    opening = next((at for at, said in enumerate(spoken) if _asks(said)), None)
    if opening is not None:
        substance[opening] *= _OPENING
    return substance


def _substance(said: Said) -> float:
    return min(len(said.text), _FULL_CHARS) / _FULL_CHARS * (1.0 if _asks(said) else _ANSWERED)


def _asks(said: Said) -> bool:
    return said.role == "user" or bool(said.speaker)


def _cosines(spoken: Sequence[Said], vector: Vector | None) -> Vector:
    """Of each message to a vector; 0 where either is not known."""
    if vector is None:
        return np.zeros(len(spoken), np.float32)
    nothing = np.zeros_like(vector)
    rows = [nothing if said.vector is None else said.vector for said in spoken]
    return np.asarray(np.stack(rows) @ vector, np.float32)


def _normalised(vector: Vector) -> Vector:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def _telling(said: Said) -> str:
    """The longest of its first sentences: it has the most to say. Empty where none will do."""
    read = said.text[:_LOOKED_AT_CHARS]
    cut_off = not said.whole or len(read) < len(said.text)
    found: list[str] = []
    for sentence in sentences_of(read):
        if BLOT in sentence.text or (cut_off and sentence.end >= len(read) - 1):
            continue
        text = _verbatim(said.text, sentence)
        # In brackets a source says what it had that is no words: a picture, a file.
        if _LEAST_CHARS <= len(text) <= _MOST_CHARS and not text.startswith("["):
            found.append(text)
        if len(found) == _LOOKED_AT:
            break
    return max(found, key=len, default="")


def _verbatim(text: str, sentence: Sentence) -> str:
    """As it was written, with the signs that end it."""
    closing = _CLOSING.match(text, sentence.end)
    return text[sentence.start : closing.end() if closing else sentence.end]


def _decisions(spoken: Sequence[Said]) -> Iterator[str]:
    for said in spoken:
        if not may_decide(said.text):
            continue
        for sentence in sentences_of(said.text):
            cut_off = not said.whole and sentence.end >= len(said.text) - 1
            too_long = len(sentence.text) > 2 * _MOST_CHARS
            if not (sentence.question or too_long or cut_off) and decides(sentence.text):
                yield _verbatim(said.text, sentence)


def _beginning(material: Material) -> str:
    """Where no sentence will do, the first words there are."""
    for said in material.said:
        line = " ".join(said.text.split())
        if line:
            return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1].rstrip()}…"
    return material.title

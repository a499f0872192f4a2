"""Titles as a person would write them: a few of the speakers' own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from language.analyzer import ENGLISH, language_of
from language.english import stem_all, stems
from language.english.topics.phrases import (
    Phrase,
    candidate_phrases,
    first_words,
    is_english,
    prose,
)
from language.extraction import Context, Embed, TopicFound, Vectors, normalised
from language.other_languages import noun_phrases
from language.transcripts import Turn

TITLE_CHARS = 60
FALLBACK_CHARS = 42
NAMELESS = "Conversation"
# Of a text, as many characters as surely hold its first words.
_BEGINNING = 1000

_BULLET = re.compile(r"^[ \t]*(?:[-*•#>]+|\d+[.)])[ \t]+", re.MULTILINE)

# What titles may cost: characters of phrases to embed for each character of the window.
_SHARE_EMBEDDED = 0.05
# Of an answer, where the question has no phrases ("please continue"): it says first what it is.
_ANSWER_CHARS = 300
# A phrase costs the embedder its two marker tokens besides its words.
_OVERHEAD_CHARS = 8
_LEAST_CANDIDATES, _MOST_CANDIDATES = 4, 12
# What is this much less likely by its words and place hardly ever wins by its meaning: of LoCoMo's
# and BEAM's titles one in forty would be another, and over a third of the embedding is saved.
_WITHIN_REACH = 0.3

# Above this likeness to the topic, or to what was said last, a window goes on with it.
_SAME_TOPIC = 0.35
# Fewer words than this tell no language by themselves.
_ENOUGH_WORDS = 6
_NUMBER_WORD = (
    r"(?:half|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|ninety|hundred|thousand|first|second|third|\d+)"
)
_NO_SUBJECT = re.compile(
    rf"(?i){_NUMBER_WORD}(?:[ -]{_NUMBER_WORD})*(?: (?:minutes?|hours?|days?|weeks?|months?|years?"
    rf"|times?|words?|metres?|miles?|people|nights?))?|january|february|march|april|may|june|july"
    rf"|august|september|october|november|december|english|french|german|spanish|italian"
    # A sentence that was cut after its verb.
    r"|[^ ]+(?: [^ ]+)? (?:slept|died|snores|wants|runs|walks|resets|passes)"
)

# Shorter words are nobody's short name.
_LEAST_SHORT = 3
# "Thanks, that helps!" is about whatever came before.
_FEW_WORDS = 4

_GENERIC = frozenset(
    "new chat|new conversation|untitled|untitled chat|untitled conversation|chat|conversation"
    "|session|none|unnamed|no title|general|default|test|dm|direct message|thread".split("|")
)
_NUMBERED = re.compile(
    r"(?i)(?:chat|session|conversation|conv|dialogue|thread|room|part|d|s)?[\s_#.:-]*[\d\s_#.:/-]+"
)
# What a day and an hour are written with. Each alternative begins differently, so that however
# long a title is, it is read once.
_DATED = re.compile(
    r"(?i)\d(?:[\d\s.,:/+-]|(?<=\d)(?:st|nd|rd|th|am|pm|[tzh])\b|(?<=\d)t(?=\d)"
    r"|\b(?:am|pm|utc|gmt|at|on|of|morning|afternoon|evening|night|session|chat|conversation"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b)*"
)


# Phrases with how good a title their words and places make them, the best first.
Shortlist = Sequence[tuple[float, Phrase]]


@dataclass(frozen=True, slots=True)
class Read:
    """A turn as the title makers see it."""

    turn: Turn
    prose: str
    asks: bool  # Its words may become titles: a person's, not the assistant's.


def is_real_title(title: str) -> bool:
    """Whether a source's title says something, unlike "New chat", a date or an id."""
    plain = " ".join(title.split())
    if plain.lower() in _GENERIC or not re.search(r"[^\W\d_]{2}", plain):
        return False
    if _NUMBERED.fullmatch(plain) or _DATED.fullmatch(plain):
        return False
    is_id = " " not in plain and plain.isascii() and bool(re.search(r"[\d_]", plain))
    return not is_id


def title_candidates(
    reads: Sequence[Read], spans: Sequence[tuple[int, int]], speakers: frozenset[str] = frozenset()
) -> list[Shortlist]:
    """For each stretch of turns the phrases that may be its title; none where none may.

    Args:
        speakers: Words of the speakers' names: who talks is not what is talked about.
    """
    chars = sum(len(read.prose) for read in reads)
    each = _SHARE_EMBEDDED * chars / len(spans)
    return [_shortlist(reads[first : last + 1], each, speakers) for first, last in spans]


def topic_titles(
    reads: Sequence[Read],
    spans: Sequence[tuple[int, int]],
    shortlists: Sequence[Shortlist],
    vectors: Vectors | None,
    embed: Embed,
) -> list[str]:
    """One title for each stretch of turns, in order; empty where nothing in it makes one."""
    closeness = _closeness(reads, spans, shortlists, vectors, embed)
    return [_best(*each) for each in zip(shortlists, closeness, strict=True)]


def contested(shortlist: Shortlist) -> list[str]:
    """What has to be told apart by meaning; nothing where there is no choice."""
    return [phrase.text for _, phrase in shortlist] if len(shortlist) > 1 else []


def conversation_title(
    reads: Sequence[Read], topics: Sequence[TopicFound], project: str = ""
) -> str:
    """What the conversation as a whole is called, from the titles of its topics.

    Whoever asks an assistant says first what it is about; people come to it by and by, and
    their talk is named after the two topics that took most of it.
    """
    if project:
        return _of_project(project, topics[0].title, reads)
    if len(topics) == 1 or not all(read.turn.speaker for read in reads):
        return topics[0].title
    by_length = sorted(topics, key=lambda topic: (topic.first - topic.last, topic.first))
    one, other = sorted(by_length[:2], key=lambda topic: topic.first)
    joined = f"{one.title} and {_uncapitalised(other.title, reads)}"
    fits = len(joined) <= TITLE_CHARS and " and " not in one.title + other.title
    return joined if fits else by_length[0].title


def _of_project(project: str, topic: str, reads: Sequence[Read]) -> str:
    """ "Budget tracker: login page"; the project alone where the topic says no more."""
    own = set(stem_all(re.findall(r"\w+", topic.lower())))
    known = set(stem_all(re.findall(r"\w+", project.lower())))
    joined = f"{project}: {_uncapitalised(topic, reads)}"
    return project if own <= known or len(joined) > TITLE_CHARS else joined


def continues(
    reads: Sequence[Read], vectors: Vectors | None, context: Context, embed: Embed
) -> bool:
    """Whether these turns go on with the topic of the turns before the window."""
    if not context.topic or not context.before:
        return False
    asked = " ".join(read.prose for read in reads if read.asks) or reads[0].prose
    meaning = set(stem_all(re.findall(r"[^\W\d_]{3,}", asked.lower()))) - stems("function")
    if len(meaning) < _FEW_WORDS or meaning & set(stem_all(context.topic.lower().split())):
        return True
    if vectors is None:
        return False
    latest = [turn for turn in context.before if turn.role == "user" or turn.speaker]
    texts = [context.topic, *(prose(turn.text)[:300] for turn in latest[-1:])]
    middle = normalised(vectors[: len(reads)].sum(axis=0))
    return bool((embed(texts) @ middle).max() > _SAME_TOPIC)


def _uncapitalised(title: str, reads: Sequence[Read]) -> str:
    """As it would be written within a sentence: names and abbreviations keep their capital."""
    first = title.split()[0]
    if sum(map(str.isupper, first)) > 1 or not first[:1].isupper():
        return title
    lower = first[0].lower() + first[1:]
    is_word = any(re.search(rf"\b{re.escape(lower)}\b", read.prose) for read in reads)
    return lower + title[len(first) :] if is_word else title


def fallback_title(reads: Sequence[Read]) -> str:
    """The first words that a person wrote; for what has no phrases to choose from."""
    own = [read for read in reads if read.asks] or list(reads)
    for text in (*(read.prose for read in own), *(read.turn.text for read in own)):
        plain = " ".join(_BULLET.sub("", text.lstrip()[:_BEGINNING]).split()).strip(" #*>-`'\"")
        if re.search(r"\w", plain) or (plain and text is own[-1].turn.text):
            return capitalised(first_words(plain, FALLBACK_CHARS))
    return NAMELESS


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shortlist(reads: Sequence[Read], chars: float, speakers: frozenset[str]) -> Shortlist:
    """The phrases most likely to be titles by their words and places, the best first."""
    common = _turns_with(reads)
    own = [read.prose for read in reads if read.asks]
    answers = [read.prose[:_ANSWER_CHARS] for read in reads if not read.asks]
    language = language_of(" ".join(said[:_ANSWER_CHARS] for said in own or answers))
    for proses in (own, answers):
        best: dict[str, tuple[float, Phrase]] = {}
        for at, said in enumerate(filter(None, proses)):
            for phrase in _candidates(said, language, common):
                if all(_is_of_name(stem, speakers) for stem in phrase.stems):
                    continue
                score = _score(phrase, common, len(reads), at)
                key = phrase.text.lower()
                if key not in best or best[key][0] < score:
                    best[key] = (score, phrase)
        if best:
            ranked = sorted(best.values(), key=lambda pair: (-pair[0], pair[1].text))
            least = ranked[0][0] - _WITHIN_REACH
            return [each for each in ranked[: _affordable(ranked, chars)] if each[0] >= least]
    return []


def _candidates(said: str, language: str, common: Counter[str]) -> Iterator[Phrase]:
    """Noun phrases in the language of the message.

    Args:
        language: Of the conversation; a few words in plain letters are of it.
    """
    is_short = len(said.split()) < _ENOUGH_WORDS
    if is_english(said) and (language == ENGLISH or not is_short):
        yield from (phrase for phrase in candidate_phrases(said) if not _is_empty(phrase))
        return
    for text in noun_phrases(said, language if is_short else language_of(said)):
        meaning = frozenset(stem_all(re.findall(r"[^\W\d_]{2,}", text.lower())))
        returns = max((common[stem] for stem in meaning), default=0) > 1
        if meaning and len(text) <= TITLE_CHARS and (returns or " " in text or "の" in text):
            yield Phrase(text, meaning, 0.2 if " " in text else 0.8, proper=True)


def _is_empty(phrase: Phrase) -> bool:
    """Whether it is a number of something, a day, a month or a language: "twenty minutes"."""
    return _NO_SUBJECT.fullmatch(phrase.text) is not None


def _is_of_name(stem: str, names: frozenset[str]) -> bool:
    """Also "Mel", of Melanie."""
    return len(stem) >= _LEAST_SHORT and any(name.startswith(stem) for name in names)


def _affordable(ranked: Sequence[tuple[float, Phrase]], chars: float) -> int:
    spent = 0
    for count, (_, phrase) in enumerate(ranked):
        spent += len(phrase.text) + _OVERHEAD_CHARS
        if count >= _MOST_CANDIDATES or (spent > chars and count >= _LEAST_CANDIDATES):
            return count
    return len(ranked)


def _turns_with(reads: Sequence[Read]) -> Counter[str]:
    """How many turns each stem occurs in."""
    counts: Counter[str] = Counter()
    for read in reads:
        counts.update(set(stem_all(re.findall(r"[^\W_]+", read.prose[:1000].lower()))))
    return counts


def _score(phrase: Phrase, common: Counter[str], turns: int, asked: int) -> float:
    size = len(phrase.text.split())
    spread = sum(common[stem] for stem in phrase.stems) / len(phrase.stems) if phrase.stems else 0.0
    score = 0.5 * log1p(spread) / log1p(turns)
    score += 0.4 * phrase.cue + (0.45 if asked == 0 else 0.0)
    if size == 1 and spread < 2 < turns and not phrase.proper:
        score -= 0.3  # Said once, it may be any word; even a verb that was not known as one.
    score += {1: -0.3, 2: 0.1, 3: 0.12, 4: 0.05}.get(size, 0.0)
    return score + (0.1 if phrase.proper else 0.0)


def _closeness(
    reads: Sequence[Read],
    spans: Sequence[tuple[int, int]],
    shortlists: Sequence[Shortlist],
    vectors: Vectors | None,
    embed: Embed,
) -> list[list[float]]:
    """Cosine of each candidate to the middle of its stretch; zeros where it does not matter."""
    texts = [text for shortlist in shortlists for text in contested(shortlist)]
    if vectors is None or not texts:
        return [[0.0] * len(shortlist) for shortlist in shortlists]
    weights = np.array([min(len(read.prose), 200) * (1 + 2 * read.asks) for read in reads])
    weighted = vectors * weights[:, None]
    middles = normalised(np.vstack([weighted[a : b + 1].sum(axis=0) for a, b in spans]))
    owners = [at for at, shortlist in enumerate(shortlists) for _ in contested(shortlist)]
    cosines = iter((embed(texts) * middles[owners]).sum(axis=1).tolist())
    return [[next(cosines) for _ in contested(each)] or [0.0] * len(each) for each in shortlists]


def _best(shortlist: Shortlist, closeness: Sequence[float]) -> str:
    if not shortlist:
        return ""
    scores = [score + 1.5 * close for (score, _), close in zip(shortlist, closeness, strict=True)]
    best = shortlist[int(np.argmax(scores))][1]
    text = best.text.lower() if best.text.isupper() and len(best.text) > 6 else best.text
    return capitalised(text)

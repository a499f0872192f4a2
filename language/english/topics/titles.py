"""Titles as a person would write them: a few of the speakers' own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from typing import NamedTuple

import numpy as np

from language.analyzer import ENGLISH, UNSPACED, language_of
from language.english import stem_all, words
from language.english.topics.phrases import Phrase, candidate_phrases, is_english
from language.extraction import Embed, TopicFound, Vectors, normalised
from language.other_languages import joined, roots, says_enough, titles_in
from language.transcripts import Turn, first_words

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
# The second thing that people spoke of lies further behind.
_WITHIN_REACH_OF_TALK = 0.5

# A title of so many words is likelier to be a good one.
_BY_WORDS = {1: -0.5, 2: 0.1, 3: 0.12, 4: 0.1, 5: 0.08, 6: 0.05}
# What a cosine of 1 to the whole counts for.
_NEARNESS = 1.5
# Two things name a talk where the second scores nearly as well, and is less alike than this.
_BESIDE, _ALIKE = 0.75, 0.5
_MOST_WORDS_OF_TWO = 7
# What a part of the talk is called counts for so much more.
_NAMES_TOPIC = 0.3
# What comes in several turns is spoken of if it is this near to the whole; what is said once has
# to be nearer.
_SEVERAL, _CENTRAL, _VERY_CENTRAL = 2, 0.2, 0.3
# Who has asked so often and never came back to what they began with, was about something else.
_MANY_ASKED = 4
# A request stands at the beginning; what follows tells why.
_FIRST_SENTENCE = 160
# "[shared a picture: a dog]": what a program wrote into the message. A link has its address behind.
_ASIDE = re.compile(r"\[[^\[\]\n]{3,300}\](?!\()")
# Fewer words than this tell no language by themselves.
_ENOUGH_WORDS = 6
_NUMBER_WORD = (
    r"(?:half|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|ninety|hundred|thousand|first|second|third|\d+)"
)
# "Twenty minutes", "May", "English".
_NO_SUBJECT = re.compile(
    rf"(?i){_NUMBER_WORD}(?:[ -]{_NUMBER_WORD})*(?: (?:minutes?|hours?|days?|weeks?|months?|years?"
    rf"|times?|words?|metres?|miles?|people|nights?))?|january|february|march|april|may|june|july"
    rf"|august|september|october|november|december|english|french|german|spanish|italian"
    # A sentence that was cut after its verb.
    r"|[^ ]+(?: [^ ]+)? (?:slept|died|snores|wants|runs|walks|resets|passes)"
)

# Shorter words are nobody's short name.
_LEAST_SHORT = 3

# With how good a title its words and place make each phrase; the best first.
Shortlist = Sequence[tuple[float, Phrase]]


@dataclass(frozen=True, slots=True)
class Read:
    """A turn as the title makers see it."""

    turn: Turn
    prose: str
    asks: bool  # Its words may become titles: a person's, not the assistant's.


@dataclass(frozen=True, slots=True)
class Stretch:
    """Turns about one thing, and the phrases that may be its title; none where none may.

    Attributes:
        common: In how many turns each stem occurs.
        own: In how many of people's turns.
        opening: The phrases of its first turn of a person, in lower case.
        middle: The sum of its turns' vectors, by their weight; None without an embedder.
    """

    reads: Sequence[Read]
    shortlist: Shortlist
    common: Counter[str]
    own: Counter[str]
    opening: frozenset[str]
    middle: Vectors | None


def stretch(
    reads: Sequence[Read], vectors: Vectors | None, chars: float, speakers: frozenset[str]
) -> Stretch:
    """
    Args:
        vectors: One row a turn (unit length).
        chars: So many characters of phrases may be embedded.
        speakers: Words of the speakers' names: who talks is not what is talked about.
    """
    common, own = Counter[str](), Counter[str]()
    for read in reads:
        found = set(roots(read.prose[:_BEGINNING]))
        common.update(found)
        own.update(found if read.asks else ())
    middle = None
    if vectors is not None:
        weights = np.array([min(len(read.prose), 200) * (1 + 2 * read.asks) for read in reads])
        middle = np.asarray((vectors * weights[:, None]).sum(axis=0), np.float32)
    opening, shortlist = _shortlist(reads, common, own, chars, speakers)
    return Stretch(reads, shortlist, common, own, opening, middle)


def share_embedded(reads: Sequence[Read], spans: int) -> float:
    """How many characters of phrases may be embedded for each of so many stretches."""
    return _SHARE_EMBEDDED * sum(len(read.prose) for read in reads) / spans


def topic_titles(stretches: Sequence[Stretch], embed: Embed | None) -> list[str]:
    """One title for each stretch of turns, in order; empty where nothing in it makes one.

    Args:
        embed: None where words alone must do.
    """
    ranked = [_ranked([each], len(each.reads), embed) for each in stretches]
    return [_written(found[0].phrase) if found else "" for found in ranked]


def contested(shortlist: Shortlist) -> list[str]:
    """What has to be told apart by meaning; nothing where there is no choice."""
    return [phrase.text for _, phrase in shortlist] if len(shortlist) > 1 else []


def conversation_title(
    stretches: Sequence[Stretch], topics: Sequence[TopicFound], project: str, embed: Embed | None
) -> str:
    """What the conversation as a whole is called: by the phrase that stands best for all of it.

    People who ask an assistant say first what it is about, if that comes again. Talk between
    people reaches its subject later, and may be named after two things.

    Args:
        topics: Of its beginning; where no phrase is found, the first one names it.
    """
    reads = [read for each in stretches for read in each.reads]
    between_people = all(read.turn.speaker for read in reads)
    if len(stretches) == 1 and not between_people and not project:
        return topics[0].title
    ranked = _ranked(stretches, len(reads), embed)
    if project:
        return _of_project(project, ranked, reads)
    if not ranked:
        return topics[0].title
    best = ranked[0]
    if not between_people:
        return _written(best.phrase)
    known = {topic.title for topic in topics}
    weighed = [
        each._replace(score=each.score + _NAMES_TOPIC * (_written(each.phrase) in known))
        for each in ranked
    ]
    best, *ranked = sorted(weighed, key=lambda each: -each.score)
    other = next((each for each in ranked if _stands_beside(best, each)), None)
    if other is None:
        return _written(best.phrase)
    one, two = sorted((best, other), key=lambda each: each.place)
    language = language_of(" ".join(read.prose[:_ANSWER_CHARS] for read in reads))
    title = joined(_written(one.phrase), _uncapitalised(_written(two.phrase), reads), language)
    return title if len(title) <= TITLE_CHARS else _written(best.phrase)


class _Ranked(NamedTuple):
    """A phrase that may name the whole conversation.

    Attributes:
        near: Cosine to the middle of the whole.
        place: Where it is first said: the stretch, and the turn within it.
        turns: How many turns its words occur in.
    """

    score: float
    phrase: Phrase
    near: float
    vector: Vectors | None
    place: tuple[int, int]
    turns: float


def _ranked(stretches: Sequence[Stretch], turns: int, embed: Embed | None) -> list[_Ranked]:
    """The phrases of all stretches by how well each stands for the whole; the best first."""
    common = sum((each.common for each in stretches), Counter[str]())
    own = sum((each.own for each in stretches), Counter[str]())
    asked = sum(read.asks for each in stretches for read in each.reads)
    first = next((at for at, each in enumerate(stretches) if each.shortlist), 0)
    places: dict[str, tuple[float, Phrase, tuple[int, int]]] = {}
    for at, each in enumerate(stretches):
        for _, phrase in each.shortlist:
            key = phrase.text.lower()
            opens = at == first and key in each.opening
            score = _score(phrase, common, own, turns, asked, opens=opens)
            turn = next((n for n, read in enumerate(each.reads) if phrase.text in read.prose), 0)
            place = (at, turn)
            if key in places:
                known, place = places[key][1:]
                phrase = max(known, phrase, key=lambda one: sum(map(str.isupper, one.text)))
            places[key] = (max(score, places[key][0]) if key in places else score, phrase, place)
    if not places:
        return []
    vectors: list[Vectors | None] = [None] * len(places)
    near = [0.0] * len(places)
    sums = [each.middle for each in stretches if each.middle is not None]
    if embed is not None and sums and len(places) > 1:
        rows = embed([phrase.text for _, phrase, _ in places.values()])
        near = (rows @ normalised(np.sum(sums, axis=0))).tolist()
        vectors = list(rows)
    found = [
        _Ranked(score + _NEARNESS * close, phrase, close, vector, place, _spread(phrase, common))
        for (score, phrase, place), close, vector in zip(
            places.values(), near, vectors, strict=True
        )
    ]
    return sorted(found, key=lambda each: (-each.score, each.phrase.text))


def _stands_beside(best: _Ranked, other: _Ranked) -> bool:
    """Whether it is something else that they spoke of, and not in passing."""
    if other.score < best.score - _BESIDE or other.phrase.stems & best.phrase.stems:
        return False
    if " and " in f"{best.phrase.text} {other.phrase.text}":
        return False
    if len(f"{best.phrase.text} {other.phrase.text}".split()) > _MOST_WORDS_OF_TWO:
        return False
    if best.vector is None or other.vector is None:
        return True
    is_central = other.near > (_CENTRAL if other.turns >= _SEVERAL else _VERY_CENTRAL)
    return is_central and float(best.vector @ other.vector) < _ALIKE


def _of_project(project: str, ranked: Sequence[_Ranked], reads: Sequence[Read]) -> str:
    """ "Budget tracker: login page"; the project alone where nothing says more."""
    known = set(stem_all(re.findall(r"\w+", project.lower())))
    for each in ranked:
        own = set(stem_all(re.findall(r"\w+", each.phrase.text.lower())))
        title = f"{project}: {_uncapitalised(_written(each.phrase), reads)}"
        if not own & known and len(title) <= TITLE_CHARS:
            return title
    return project


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


def _written(phrase: Phrase) -> str:
    text = phrase.text
    return capitalised(text.lower() if text.isupper() and len(text) > 6 else text)


def _shortlist(
    reads: Sequence[Read],
    common: Counter[str],
    own_turns: Counter[str],
    chars: float,
    speakers: frozenset[str],
) -> tuple[frozenset[str], Shortlist]:
    """The phrases of the first turn, and those most likely to be titles, the best first."""
    own = [_ASIDE.sub(" . ", read.prose) for read in reads if read.asks]
    answers = [read.prose[:_ANSWER_CHARS] for read in reads if not read.asks]
    language = language_of(" ".join(said[:_ANSWER_CHARS] for said in own or answers))
    for proses in (own, answers):
        # Of phrases of the same words, in any form, one is enough.
        best: dict[frozenset[str], tuple[float, Phrase]] = {}
        opening: set[str] = set()
        for at, said in enumerate(filter(None, map(str.strip, proses))):
            for phrase in _candidates(said, language, common):
                is_name = phrase.text.istitle()  # "Car" may be Caroline, "new car" is none.
                if is_name and all(_is_of_name(stem, speakers) for stem in phrase.stems):
                    continue
                opens = at == 0
                score = _score(phrase, common, own_turns, len(reads), len(own), opens=opens)
                if opens:
                    opening.add(phrase.text.lower())
                known = best.get(phrase.stems)
                if known is None or known[0] < score:
                    best[phrase.stems] = (score, phrase)
        if best:
            ranked = sorted(best.values(), key=lambda pair: (-pair[0], pair[1].text))
            is_talk = all(read.turn.speaker for read in reads)
            least = ranked[0][0] - (_WITHIN_REACH_OF_TALK if is_talk else _WITHIN_REACH)
            chosen = [each for each in ranked[: _affordable(ranked, chars)] if each[0] >= least]
            return frozenset(opening), chosen
    return frozenset(), []


def _candidates(said: str, language: str, common: Counter[str]) -> Iterator[Phrase]:
    """Noun phrases in the language of the message.

    Args:
        language: Of the conversation; a few words in plain letters are of it.
    """
    said_words = len(said.split())
    # "Hey John, stay safe. Chat soon!" has hardly a function word.
    is_chat = language == ENGLISH and said_words < 2 * _ENOUGH_WORDS and said.isascii()
    own = language if said_words < _ENOUGH_WORDS or is_chat else language_of(said)
    if is_chat or (is_english(said) and ENGLISH in (language, own)):
        found = candidate_phrases(said)
        yield from (phrase for phrase in found if not _NO_SUBJECT.fullmatch(phrase.text))
        return
    for cue, text, meaning in titles_in(said, own):
        returns = max((common[root] for root in meaning), default=0) > 1
        if len(text) <= TITLE_CHARS and (returns or says_enough(text)):
            yield Phrase(text, meaning, cue, proper=True, start=max(said.find(text), 0))


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


def _spread(phrase: Phrase, counts: Counter[str]) -> float:
    """In how many turns its words occur; of many words, the two that occur in most."""
    most = sorted((counts[stem] for stem in phrase.stems), reverse=True)[:2]
    return sum(most) / len(most) if most else 0.0


def _score(
    phrase: Phrase, common: Counter[str], own: Counter[str], turns: int, asked: int, *, opens: bool
) -> float:
    """
    Args:
        turns: How many there are; `asked` of them are people's.
        opens: Whether it is said in the first of these.
    """
    size = len(phrase.text.split())
    spread = _spread(phrase, common)
    score = 0.5 * log1p(spread) / log1p(turns)
    score += 0.4 * phrase.cue
    if opens:
        returns = asked < _MANY_ASKED or max((own[stem] for stem in phrase.stems), default=0) > 1
        # People begin with their news.
        score += 0.45 if returns else 0.35 if asked == turns else 0.2
        score -= 0.15 if phrase.start > _FIRST_SENTENCE else 0.0
    if size == 1 and phrase.text.lower() in words("general"):
        score -= 0.25
    if re.search(r"\d", phrase.text):
        score -= 0.2  # "Bootstrap v5.3.0": what it is done with.
    if size == 1 and spread < 2 < turns and not phrase.proper:
        score -= 0.3  # Said once, it may be any word; even a verb that was not known as one.
    if size == 1 and UNSPACED.search(phrase.text):
        size = 1 + min(len(phrase.text) // 3, 2)
    score += _BY_WORDS.get(size, 0.0)
    return score + ((0.3 if size == 1 else 0.1) if phrase.proper else 0.0)

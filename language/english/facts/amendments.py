"""What puts right or changes something known without saying it again: "sorry, typo: Dordrecht".

What it is about can only be told beside what is known, so these candidates name no predicate:
whoever judges them finds the fact that is meant, or drops them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from language.english.facts.changes import (
    END,
    FEW,
    PREP,
    ended_in,
    may_change,
    parted_from,
    replaced_in,
    taken_back_in,
    view_taken_back_in,
)
from language.english.facts.people import Person
from language.english.facts.rules import read_ahead
from language.english.facts.sentences import spelt_out
from language.english.facts.vocabulary import DAY, FIGURE, NOT_NAMES, WEEKDAY
from language.english.grammatical_person import third
from language.facts import UNRESOLVED, Candidate, Thing, Words

_SIGNAL = (
    r"(?:no,? wait|wait,? no|wait|sorry|apologies|oops|whoops|ups|correction|typos?"
    r"|(?:damn )?autocorrect|scrap (?:that|this|it)|scratch (?:that|this|it)|strike that"
    r"|make (?:that|it)|ignore (?:that|the last one)|I (?:meant|mean|misspoke|mistyped"
    r"|misremembered|misread (?:it|that)|mixed (?:that|it|them) up|stand corrected|mixed up (?:my"
    r"|the) \w+|got the \w+ wrong|got (?:that|it|this|them) (?:wrong|mixed up|muddled|backwards)"
    r"|made a mistake|was wrong|should have said|lied)|(?:that|it|this) was (?:wrong|a typo"
    r"|a mistake(?! to\b)|not right)|(?:that|this) is (?:wrong|not right)|(?:my (?:mistake|bad"
    r"|error)|wrong|mistake|edit)(?=\s*(?:\Z|[,;:.!?()–—-]|(?:I|it|its|he|she|they|we|the|not|no"
    r"|sorry|meant|should)\b))|to correct myself|or rather|(?:it|that|he|she) (?:is )?(?:spelt"
    r"|spelled|written|spells it)|rather|I have to correct myself|let me (?:fix|correct) (?:that"
    r"|myself)|it should (?:be|say|read))"
)
_WEAK = r"(?:actually|no|nope|hang on|hold on|hm+|ah|oh|well|ok|okay|I just (?:checked|noticed))"
_OPENING = re.compile(
    rf"(?i)\A(?:(?:{_SIGNAL}|{_WEAK}|(?:about|in) (?:that|my last message))\b[\s,:;.!–—-]*)+"
)
_IS_STRONG = re.compile(rf"(?i)\b{_SIGNAL}\b")
_ENDING = re.compile(
    rf"(?i)(?:[\s,;:.!–—-]+(?:{_SIGNAL}|I just checked|not (?:sure )?why I wrote that))+\Z"
)
_FILLING = re.compile(
    r"(?i)\A(?:(?:it|that|this|he|she|they|I|we|there|her|his|its|the|my|our|your|own|name|one"
    r"|number|figure|date|year|day|age):? |(?:is|was|are|am|were|would be|should (?:be|have been"
    r"|say|read)|has to be|must be|meant|mean|called|named|spelt|spelled|in|at|on|for|to|really"
    r"|actually|make (?:that|it)|supposed to be|of course|obviously|rather|with) )+"
)
_PAIRS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bnot {PREP}(?P<old>{FEW})(?:,? (?:sorry,? )?(?:but|it is|that is|rather"
        rf"|I meant?))(?: rather)? "
        rf"{PREP}(?P<new>(?!(?:I|we|he|she|they|you)\b){FEW}){END}",
        rf"\b(?:was|is|are|am) (?:not|no) {PREP}(?P<old>{FEW})(?: at all| any more|, actually)?"
        rf",? (?:(?:it|that|but|he|she|they|I|we|actually)(?: is| was| are| am)? )+"
        rf"{PREP}(?P<new>{FEW}){END}",
        rf"(?:\A|[,:] |\b(?:is|are|am|was|meant|mean|in|at|to|on|called|named|make that) )"
        rf"(?:the |an? )?(?P<new>(?!(?:I|we|he|she|they|it|you|do|does|if|but|and|why)\b){FEW})"
        rf"(?:, (?:and )?not| and not|,? rather than|(?<=\d) not(?= \d)) {PREP}"
        rf"(?P<old>{FEW}){END}",
        rf"\b(?:said|wrote|say|write|typed|told you|put) {PREP}(?P<old>{FEW})(?: earlier| before"
        rf"| yesterday| above| last time)?[,.;?]* (?:but |and |it is |that is |I meant |I mean "
        rf"|it should be |should be |actually |really |in fact )+{PREP}"
        rf"(?P<new>(?!(?:I|we|he|she|they|it|you)\b){FEW}){END}",
        rf"\A(?P<old>{FEW}) (?:should (?:be|have been|read)|was supposed to be) "
        rf"(?P<new>{FEW}){END}",
        rf"\A(?P<old>{FEW}) ?(?:->|=>|→) ?(?P<new>{FEW}){END}",
    )
)
# One of these is in every pair, and is looked for much quicker than the patterns.
_SIGNS_OF_PAIRS = (
    " not ", "Not ", "not ", "rather ", "no ", "said ", "say ", "wrote ", "write ", "typed ",
    "told ", "should ", "supposed ", "->", "=>", "→", "put ",
)  # fmt: skip
_BEFORE = re.compile(rf"(?i)\bdid I (?:say|write) {PREP}(?P<old>{FEW}){END}")
_CHANGES = re.compile(
    r"\b(?:now|nowadays|these days|(?:[Uu]p|[Dd]own|back|cut|reduced|increased|raised|lowered"
    r"|changed"
    r"|bumped|hiked|weighed in|risen|rose|fallen|fell|dropped|grown|grew|gone|went|moved|shifted"
    r"|jumped|climbed|crept) (?:\w+ ){0,4}?(?:to|at)|(?:cracked|hit|reached|topped|broken"
    r"|broke) (?=\d)|(?:put|brought|pushed) (?:\w+ ){1,4}(?:up|down|off|forward|back))\b"
)
_VALUE = re.compile(rf"(?i){FIGURE}|{WEEKDAY}")
# "I'm on step 4 now": it numbers what is at hand.
_COUNTED = re.compile(r"(?i)\b(?:step|line|page|question|chapter|item|row|exercise|slide) \d")
_IS_DAY = re.compile(DAY, re.IGNORECASE)
# A longer sentence amends nothing in passing.
_LONGEST = 300
_MEANT = re.compile(r"\bI meant? (?P<new>[a-z][\w-]+(?: [a-z][\w-]+)?)(?=\s*(?:\Z|[,;:.!(]))")
_MAY = re.compile(
    rf"(?i)\b{_SIGNAL}\b|[*→>]|\bnot\b|n't\b|\b(?:actually|nope|rather than|went up|gone up"
    r"|down to|up to|(?:cracked|hit|reached|topped|broke|broken) \d+|moved to|(?-i:now)|is off"
    r"|pay rise|raise|bumped|put (?:\w+ ){1,2}up|weighed in"
    r"|stopped|'s (?:off|out|history|over)|spelt|spelled)\b"
)


def may_amend(message: str) -> bool:
    """A cheap look whether a message may put something right, though it speaks of nobody."""
    return (len(message) < 160 and _MAY.search(message) is not None) or may_change(message)


def puts_right(sentence: str) -> bool:
    """Whether it begins by announcing that something was wrong."""
    opening = _OPENING.match(spelt_out(sentence))
    return opening is not None and _IS_STRONG.search(opening[0]) is not None


def is_signal(sentence: str) -> bool:
    """Whether it only announces that something is put right: "Sorry, typo"."""
    opening = _OPENING.match(sentence)
    return (
        opening is not None
        and (opening.end() == len(sentence) or len(sentence.split()) <= 4)
        and _IS_STRONG.search(sentence) is not None
    )


def said_wrongly(sentence: str) -> str:
    """The value that "did I say Bergen?" takes back; empty where there is none."""
    found = _BEFORE.search(sentence)
    return found["old"] if found else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a sentence stands in.

    Attributes:
        said_at: When it was said, from which "the 12th" counts.
        me: Who speaks.
        whom: Whom the sentence is about, found out when it is asked for.
        announced: The sentence before announced a correction.
        before: The value that the sentence before took back.
        plain: Its clauses say nothing by themselves.
        ended: They say that something is so no longer.
    """

    said_at: datetime
    me: Person
    whom: Callable[[], Person]
    announced: bool = False
    before: str = ""
    plain: bool = True
    ended: bool = False

    @property
    def about(self) -> Person:
        return self.whom()


def amendments_of(sentence: str, words: Words, setting: Setting) -> Iterator[Candidate]:
    """What it puts right or changes, each without a predicate.

    The value is the object; the one whose place it takes, if it was named, is the aspect.
    """
    text = spelt_out(sentence)
    if len(text) > _LONGEST:
        return
    pairs = list(_paired(text, words, setting))
    yield from pairs
    if not pairs and setting.plain:
        yield from _put_right(text, words, setting)
    yield from _given_up(text, words, setting)


def _paired(text: str, words: Words, setting: Setting) -> Iterator[Candidate]:
    signed = any(sign in text for sign in _SIGNS_OF_PAIRS) and not view_taken_back_in(text)
    for pattern in _PAIRS if signed else ():
        found = pattern.search(text)
        if found is not None:
            yield _amendment(
                setting.about, found["new"], text, words, old=found["old"], corrects=True
            )
            return
    if (change := replaced_in(text)) is not None:
        amended = _amendment(setting.about, change.new, text, words, old=change.old, corrects=False)
        thing = Thing(amended.object, "item") if change.thing else None
        yield replace(amended, thing=thing)


def _put_right(text: str, words: Words, setting: Setting) -> Iterator[Candidate]:
    opening, ending = _OPENING.match(text), _ENDING.search(text)
    signalled = f"{opening[0] if opening else ''} {ending[0] if ending else ''}"
    announced = bool(setting.announced or setting.before)
    strong = announced or _IS_STRONG.search(signalled) is not None
    if strong or opening:
        said = text[opening.end() :] if opening else text
        meant = _MEANT.search(text)
        value = _value(_ENDING.sub("", said), strong=strong) or (meant["new"] if meant else "")
        if value:
            yield _amendment(
                setting.about, value, text, words, old=setting.before, corrects=True, sure=strong
            )
            return
    change = _CHANGES.search(text)
    if change is not None and _COUNTED.search(text) is None:
        after = _VALUE.search(text, change.start())
        figure = after[0] if after else _last(_VALUE, text)
        if figure:
            found = _amendment(setting.about, figure, text, words, corrects=False)
            yield replace(found, valid_from=_day_of(figure, setting.said_at))


def _day_of(value: str, said_at: datetime) -> datetime | None:
    return read_ahead(f"on {value}", said_at)[1].at if _IS_DAY.search(value) else None


def _value(said: str, *, strong: bool) -> str:
    """What the correction comes down to: a figure, a day or a name."""
    said = _FILLING.sub("", said.strip(" ,.:;!-–—")).strip(" ,.:;!-–—")
    figure = _VALUE.match(said)
    if figure is not None:
        return figure[0]
    first = re.split(r"[,;:.!?(]|\s[–—-]\s|\b(?:and|but|because|so|I|we|not|with)\b", said)[0]
    first = first.strip()
    capital = first[:1].isupper() and first.split()[0] not in NOT_NAMES
    if capital and len(first.split()) <= 3:
        return first
    return _last(_VALUE, said) if strong or len(said.split()) < 8 else ""


def _last(pattern: re.Pattern[str], text: str) -> str:
    found = [match[0] for match in pattern.finditer(text)]
    return found[-1] if found else ""


def _given_up(text: str, words: Words, setting: Setting) -> Iterator[Candidate]:
    """ "I'm done with keto", "Rex died": whatever is known of it holds no longer."""

    def ended(person: Person, what: str, *, corrects: bool = False) -> Candidate:
        return _amendment(person, what, text, words, corrects=corrects, negated=True)

    given = "" if setting.ended else ended_in(text)
    if back := taken_back_in(text):
        yield ended(setting.me, back, corrects=True)
    elif given:
        # "Keto did not work for me" is about me.
        about = setting.about
        yield ended(setting.me if about.thing.name == given else about, given)
    if view := view_taken_back_in(text):
        yield replace(ended(setting.me, view), type="opinion")
    if name := parted_from(text):
        yield ended(setting.me, name)


def _amendment(
    me: Person,
    value: str,
    text: str,
    words: Words,
    *,
    old: str = "",
    corrects: bool,
    negated: bool = False,
    sure: bool = True,
) -> Candidate:
    return Candidate(
        type="fact",
        subject=me.thing,
        predicate=UNRESOLVED,
        object=third(value.strip(" .,'\"*")),
        text=third(text),
        words=(words,),
        aspect=third(old.strip(" .,'\"*")),
        negated=negated,
        corrects=corrects,
        confidence=0.7 if sure else 0.5,
    )

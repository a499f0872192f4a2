"""English verbs: their forms, and a clause read as verb, tense, negation and what follows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from language.english import text_of, words

# Of two syllables, and doubled all the same; of one syllable "stop" is, and "camp" is not.
_DOUBLED = frozenset("prefer enrol transfer program travel begin quit".split())
_DOUBLES = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
# As Americans and hurried people write them.
_ALSO = {
    "traveled": "travel",
    "traveling": "travel",
    "learnt": "learn",
    "practiced": "practice",
    "gotten": "get",
    "dreamt": "dream",
    "'m": "be",
    "am": "be",
    "are": "be",
    "were": "be",
    "studied": "study",
    "married": "marry",
}


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def _stem(verb: str) -> str:
    """As it stands before "ed" and "ing": "hugg", "bak"."""
    if verb in _DOUBLED or _DOUBLES.fullmatch(verb):
        return verb + verb[-1]
    return verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) else verb


def _past(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "d" if verb.endswith("e") else _stem(verb) + "ed"


def _ing(verb: str) -> str:
    return "being" if verb == "be" else _stem(verb) + "ing"


def _table() -> dict[str, tuple[str, str, str, str]]:
    table = {
        verb: (_third(verb), _past(verb), _past(verb), _ing(verb))
        for verb in sorted(words("regular_verbs"))
    }
    # Lemma, third person, past, participle; the form in -ing is made by rule.
    for row in text_of("irregular_verbs").splitlines():
        verb, third, past, participle = row.split()
        table[verb] = (third, past, participle, _ing(verb))
    return table


FORMS = _table()
BASE = {verb: verb for verb in FORMS}
THIRD = {forms[0]: verb for verb, forms in FORMS.items()}
PAST = {forms[1]: verb for verb, forms in FORMS.items()}
PARTICIPLE = {forms[2]: verb for verb, forms in FORMS.items()}
ING = {forms[3]: verb for verb, forms in FORMS.items()}
for _form, _verb in _ALSO.items():
    _where = ING if _form.endswith("ing") else PAST
    if _form not in ("'m", "am", "are", "were"):
        _where[_form] = PARTICIPLE[_form] = _verb


def third_person(verb: str) -> str:
    return FORMS[verb][0] if verb in FORMS else _third(verb)


def past(verb: str) -> str:
    return FORMS[verb][1] if verb in FORMS else _past(verb)


def gerund(verb: str) -> str:
    return FORMS[verb][3] if verb in FORMS else _ing(verb)


class Tense(StrEnum):
    PRESENT = "present"  # "I live", "I have lived".
    PERFECT = "perfect"
    PROGRESSIVE = "progressive"  # "I am learning".
    PAST = "past"
    USED_TO = "used to"
    FUTURE = "future"
    WOULD = "would"  # "I would love to".
    CAN = "can"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and what stands around it.

    Attributes:
        lemma: Its base form.
        tail: What follows it, as it was written.
        ended: "no longer", "not any more".
        adverbs: Those in between, in lower case.
        ongoing: "have been learning" rather than "have learnt".
    """

    lemma: str
    tail: str
    tense: Tense
    negated: bool = False
    ended: bool = False
    adverbs: frozenset[str] = frozenset()
    ongoing: bool = False


_ADVERBS = frozenset(
    """
    really just also actually currently now still recently finally already mostly usually
    often always sometimes absolutely totally definitely honestly basically literally only
    mainly generally officially happily proudly sadly simply personally both all even rarely
    genuinely truly kinda normally typically regularly seriously mainly primarily strictly
    fully completely newly freshly lately almost pretty myself ourselves since deeply
    particularly especially quite very so much strongly greatly first originally eventually
    ever initially nearly long super highly formerly previously certainly obviously
    """.split()
)
_BEFORE_THE_TAIL = frozenset("not actually currently just also now still mostly mainly".split())
_MODALS = frozenset("would could should might may must shall".split())
_DROPPED_AT_END = re.compile(
    r"(?i)[,\s]+(?:together lately|recently|finally|atm|rn|thank god|thankfully|these days"
    r"|at the moment|at present|right now"
    r"|in the end|at last|once and for all|at the mo|now|currently|nowadays|as well|too|though"
    r"|actually|fyi|btw|by the way|lol|haha|as you know|of course|already|lately|for now|xd"
    r"|for years|with me|I (?:think|guess|suppose|believe)|tbh|tho|to be honest|a lot|very much"
    r"|so much|so far|ha|yay|:\)|:D)\Z"
)
_NOWADAYS = re.compile(r"(?i)\b(?:these days|nowadays|now|btw|actually)(?=\W*\Z|,)")
_SIGNS_OF_NOW = (" now", "days", " btw", " actually")
_ANY_MORE = re.compile(r"(?i),?\s+(?:any ?more|any longer)\b")
_WORD = re.compile(r"[^\s,]+")


# "I stopped drinking", "we ended up adopting her": what is said is the verb that follows.
_OF_ANOTHER = re.compile(
    r"(?is)(?:(?P<ended>(?:stop|quit|give up) (?=\w+ing\b))|(?P<begun>(?:start|begin) (?:to "
    r"|(?=\w+ing\b)))|(?:end|wind) up (?=\w+ing\b)|manage to )(?P<verb>\w+)(?P<tail>.*)\Z"
)
_ASPECTS = frozenset("stop quit give start begin end wind manage".split())


def said_by(verb: Verb) -> Verb | None:
    """The verb that such a verb is about; None of others."""
    found = None
    if verb.lemma in _ASPECTS and verb.tense in (Tense.PAST, Tense.PERFECT) and not verb.negated:
        found = _OF_ANOTHER.match(f"{verb.lemma} {verb.tail}")
    lemma = (ING | BASE).get(found["verb"].lower()) if found else None
    if found is None or lemma is None:
        return None
    ended = found["ended"] is not None
    tense = Tense.PRESENT if ended or found["begun"] else Tense.PAST
    tail = found["tail"].strip()
    return replace(verb, lemma=lemma, tail=tail, tense=tense, negated=ended, ended=ended)


def read_verb(rest: str) -> Verb | None:
    """The verb at the beginning of `rest`, which follows a subject; None where there is none."""
    return _Reader(rest).read()


class _Reader:
    """Goes through the words between a subject and what is said of it."""

    def __init__(self, rest: str) -> None:
        self._rest = rest
        self._words = list(_WORD.finditer(rest[:200]))
        self._at = 0
        self._negated = self._ended = self._ongoing = False
        self._adverbs: set[str] = set()

    def _skip(self) -> None:
        """Adverbs and negations, wherever they stand."""
        while (word := self._word()) is not None:
            if word in ("not", "never"):
                self._negated = True
            elif word == "no" and self._word(1) == "longer":
                self._negated = self._ended = True
                self._at += 1
            elif word not in _ADVERBS:
                return
            self._adverbs.add(word)
            self._at += 1

    def _word(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._words[at][0].lower() if at < len(self._words) else None

    def _take(self) -> str | None:
        self._skip()
        word = self._word()
        self._at += 1
        return word

    def _next(self) -> str | None:
        self._skip()
        return self._word()

    def read(self) -> Verb | None:
        word = self._take()
        if word is None:
            return None
        if word in ("do", "does", "did"):
            return self._done(word)
        if word in ("am", "is", "are", "was", "were"):
            return self._being(past=word in ("was", "were"))
        if word in ("have", "has", "had"):
            return self._having(past=word == "had")
        return self._modal(word)

    def _modal(self, word: str) -> Verb | None:
        if word in ("can", "cannot"):
            self._negated |= word == "cannot"
            return self._verb("can", Tense.CAN)
        if word == "will":
            return self._base(Tense.FUTURE)
        if word in _MODALS:
            return self._would() if word == "would" else None
        if word == "used" and self._word() == "to":
            self._at += 1
            return self._base(Tense.USED_TO)
        return self._plain(word)

    def _plain(self, word: str) -> Verb | None:
        if word in PAST and word not in ("put", "set", "cut", "read"):
            return self._verb(PAST[word], Tense.PAST)
        lemma = BASE.get(word) or THIRD.get(word)
        return self._verb(lemma, Tense.PRESENT) if lemma else None

    def _done(self, word: str) -> Verb | None:
        tense = Tense.PAST if word == "did" else Tense.PRESENT
        following = self._next()
        if following in BASE and (self._negated or self._word(1) is not None):
            self._at += 1
            return self._verb(BASE[following], tense)
        if self._negated and following is not None and following.isalpha():
            # "I do not discuss it": a verb that is in no list.
            self._at += 1
            return self._verb(following, tense)
        return self._verb("do", tense)

    def _base(self, tense: Tense) -> Verb | None:
        word = self._take()
        return self._verb(BASE[word], tense) if word in BASE else None

    def _would(self) -> Verb | None:
        word = self._take()
        if word in ("like", "love", "prefer", "rather") and word is not None:
            return self._verb("prefer" if word == "rather" else word, Tense.WOULD)
        return None

    def _being(self, *, past: bool, perfect: bool = False) -> Verb | None:
        word = self._next()
        ongoing = Tense.PERFECT if perfect else Tense.PAST if past else Tense.PROGRESSIVE
        if word == "going" and self._word(1) == "to" and self._word(2) in BASE:
            self._at += 2
            return None if past else self._base(Tense.FUTURE)
        if word == "about" and self._word(1) == "to":
            self._at += 2
            return self._base(Tense.FUTURE)
        if word in ING:
            self._at += 1
            self._ongoing = perfect
            return self._verb(ING[word], ongoing)
        plain = Tense.PERFECT if perfect else Tense.PAST if past else Tense.PRESENT
        return self._verb("be", plain)

    def _having(self, *, past: bool) -> Verb | None:
        word = self._next()
        if word == "been":
            self._at += 1
            return self._being(past=past, perfect=not past)
        if word == "got":
            self._at += 1
            return None if self._word() == "to" else self._verb("have", Tense.PRESENT)
        if word == "to":
            # "I had to give up running": it was done.
            self._at += 1
            takes = Tense.PRESENT if self._word() == "take" else None
            return self._base(tense) if (tense := Tense.PAST if past else takes) else None
        if word in PARTICIPLE and word not in ("set", "cut", "read", "put", "run"):
            self._at += 1
            return self._verb(PARTICIPLE[word], Tense.PAST if past else Tense.PERFECT)
        if (
            word is not None
            and word.endswith("ed")
            and word not in ("red", "bed", "rescued", "newlywed", "hundred")
        ):
            return None
        return self._verb("have", Tense.PAST if past else Tense.PRESENT)

    def _verb(self, lemma: str, tense: Tense) -> Verb:
        # Adverbs before what follows: "live just outside Porto" keeps its own.
        while (word := self._word()) in _BEFORE_THE_TAIL:
            if self._rest[self._words[self._at].start() - 2] == ",":
                break
            if word == "not":
                if lemma != "be":
                    break
                self._negated = True
            self._adverbs.add(word or "")
            self._at += 1
        if any(sign in self._rest for sign in _SIGNS_OF_NOW) and _NOWADAYS.search(self._rest):
            self._adverbs.add("nowadays")
        start = self._words[self._at].start() if self._at < len(self._words) else len(self._rest)
        tail, ended = _ANY_MORE.subn("", " " + self._rest[start:])
        return Verb(
            lemma,
            without_fillers(tail),
            tense,
            negated=self._negated,
            ended=self._ended or (bool(ended) and self._negated),
            adverbs=frozenset(self._adverbs),
            ongoing=self._ongoing,
        )


def without_fillers(tail: str) -> str:
    """Without words at the end that say nothing."""
    tail = tail.strip(" ,.;:-—–()!")
    while (shorter := _DROPPED_AT_END.sub("", " " + tail).strip(" ,.;:-—–()!")) != tail:
        tail = shorter
    return tail

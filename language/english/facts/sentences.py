"""Sentences of a message, and their clauses: stretches with a subject and a verb of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from language.english import one_of
from language.english.facts.people import RELATIONS
from language.english.facts.verbs import BASE, ING, PAST, THIRD
from language.english.facts.vocabulary import PARAPHRASES, role_in, with_capitals

# Of a longer message the beginning is read; a longer sentence is no sentence but a paste.
READ_CHARS = 12_000
SENTENCE_CHARS = 1_200
BLOT = "·"

# What stands between these is somebody else's, code, or a title. All of them are bounded.
_NOT_OWN = re.compile(
    r"```.*?(?:```|\Z)"
    # A recalled context block; of a long one the end is not read.
    r"|<memory_context>\n(?:(?!</?memory_context>).)*+(?:</memory_context>|\Z)"
    r"|`[^`\n]{1,300}`"
    r"|^[ \t]*>[^\n]*$"
    r"|https?://\S+"
    r"|\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»"
    r"|(?<!\w)'(?=[^\W\d])[^'\n]{1,200}(?:'\w[^'\n]{0,200}){0,4}'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
# A letter or a draft in a message is somebody else's, or says what others are to read.
_PASTED = re.compile(
    r"\b[Hh]ere(?:'?s| is) (?:the|a|my|what) (?:\w+ )?(?:start|draft|letter|mail|email|text|chapter"
    r"|opening|post|message|paragraph|piece|reply|answer|story|scene|page|speech)\b[^\n]*\n[ \t]*\n"
    r"|(?:\A|\n)[ \t]*(?=Dear [A-Z]|dear \w+,)|\n[ \t]*\n[ \t]*(?=(?:Hi|Hello|Hey"
    r"|To) [\w ]{2,30}[,!:.])"
)
_BLOTS = re.compile(r"\S")
_CODE_LINE = re.compile(
    r"^[^\n]*(?:[{};=<>\\]|\(\)|->)[ \t]*$|^[ \t]*(?:#|//|/\*|\w+ = )[^\n]*$", re.MULTILINE
)
# A full stop ends a sentence unless a short title or a single capital stands before it, as in
# "C. Lewis". In "I like C. I like tea" it does.
_END = re.compile(
    r"(?<!\b[Mm]r)(?<!\b[Dd]r)(?<!\bSt)(?<!\b[A-HJ-Z])(?<!\b[Mm]rs)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)"
    r"[.](?=\s|$|[)\"'”’])|(?<=\b[A-HJ-Z])[.](?=\s+(?:I|My|We)\b)|[!?…]+|\n+|(?<=\s)[*•](?=\s)"
)
# "2) I passed the test": the number belongs to the list.
_LISTED = re.compile(r"\d{1,2}\) (?=\S)")
_LIMITED = re.compile(r"\b(?:Inc|Ltd|Corp|etc)\.(?=\s+[A-Z]|\s*$)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters `start` to `end` of a message.

    Attributes:
        text: As long as they are, with straight quotes and the capitals of names, and quotations
            blotted out.
        question: It ends with a question mark.
    """

    text: str
    start: int
    end: int
    question: bool = False


def own_words(message: str) -> str:
    """Of the same length: what is quoted, code or an address is blotted out."""
    text = _beginning(message).replace("’", "'").replace("‘", "'")
    if ("\n" in text or "ear " in text[:5]) and (pasted := _PASTED.search(text)) is not None:
        text = text[: pasted.end()] + _BLOTS.sub(BLOT, text[pasted.end() :])
    if _SIGNS_OF_OTHERS.search(text):
        text = _NOT_OWN.sub(_blotted, text)
    return _CODE_LINE.sub(_blotted, text) if _LOOKS_LIKE_CODE.search(text) else text


def _beginning(message: str) -> str:
    """What is read of a long message: half a sentence at its end could say something else."""
    if len(message) <= READ_CHARS:
        return message
    begun = message[:READ_CHARS]
    end = max(begun.rfind(sign) for sign in (". ", "! ", "? ", "\n")) + 1
    return begun[:end] if end else begun


_SIGNS_OF_OTHERS = re.compile(r"[`>\"'“«]|http")
_LOOKS_LIKE_CODE = re.compile(r"[{};=\\]|\bdef \w+\(|^[ \t]*(?:#|//)", re.MULTILINE)


def _blotted(match: re.Match[str]) -> str:
    return BLOT * len(match[0])


def sentences_of(message: str) -> Iterator[Sentence]:
    """In order; those too long to be one are left out."""
    text = own_words(message)
    start = 0
    for end in _END.finditer(text):
        if text[end.start()] == "." and _LIMITED.search(
            text, max(start, end.start() - 5), end.end()
        ):
            continue
        yield from _sentence(text, start, end.start(), question="?" in end[0])
        start = end.end()
    yield from _sentence(text, start, len(text), question=False)


def _sentence(text: str, start: int, end: int, *, question: bool) -> Iterator[Sentence]:
    piece = text[start:end]
    bare = _JUST_SAID.sub("", piece.strip(" \t\r\n.,;:!()-*•\"'"))
    if not 3 <= len(bare) <= SENTENCE_CHARS:
        return
    number = _LISTED.match(bare)
    bare = bare[number.end() :] if number else bare
    first = start + piece.index(bare)
    yield Sentence(with_capitals(bare), first, first + len(bare), question)


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start` to `end` of a message.

    Attributes:
        text: The same words with contractions spelt out, so of another length.
        elided: It leaves out its subject, which is that of the clause before: "and work at Acme".
        relative: It describes the person at the end of the clause before: "who lives in Porto".
    """

    text: str
    start: int
    end: int
    elided: bool = False
    relative: bool = False


_STARTS = (
    r"(?:[Ii](?:'ll|'d|'?m|'?ve)?|[Ww]e(?:'re|'ll|'d|'?ve)?|[Mm]y|[Oo]ur|[Ss]?[Hh]e(?:'?s)?"
    r"|[Tt]hey(?:'?re|'?ve)?|[Ii]t(?:'?s)?|User|[Tt]here|[Tt]his"
    r"|[Tt]hat(?:'?s)?|[Yy]ou(?:'?re|r)?|call me|[Hh]is|[Hh]er|(?:what|how|where|who)'s|what|how"
    r"|which|why|where|can|could"
    r"|would|should|don'?t|do|does|did|is|are|any|please|if|unless|when|whether|let|not|worth|tips"
    r"|ideas|whats|wish me|fingers crossed"
    r"|advice|thoughts|suggestions|y'all|best|[A-Z][a-z]+(?= (?:is|has|lives|works|moved|goes|loves"
    r"|hates|studies)\b))"
)
_CUT = r"bc|cuz|coz|cos"
_JOINT = re.compile(
    rf"(?:\s*(?:;|:|--|—|–|\s-\s|,|\()\s*(?:and|but|so|because|cause|{_CUT}|although|though|plus|then"
    rf"|since|while|whereas|yet|or|as|although|given that|now that|even though|now)?\s*"
    rf"|\s+(?:given that|now that|even though|and|but|so|because|{_CUT}|although|though|while|plus"
    rf"|whereas|or)\s+(?:(?:yes|yeah|actually|honestly|sadly|luckily|btw|also|then)\s+)?"
    # Who writes no full stops ends a thought with "now" or a laugh.
    rf"|(?<=[a-z] now)(?<!\b(?:and|but) now)(?<!\bso now)(?<!right now)\s+"
    rf"|\s+(?:lol|haha|lmao|btw)\s+)(?=(?:now )?{_STARTS}(?![\w']))|\s*,\s*(?=now (?:at|in"
    rf"|on) (?:an? )?[A-Z])|\s*:\s+(?=(?:since|in|on|last"
    rf"|next|from|this)\s)"
)
_ELISION = re.compile(r"(?:\s*,)?\s+(?:and|but)(?:\s+then)?\s+(?=[a-z])|\s*,\s*(?=[a-z]+\s)")
# Why something is told, which is so in any case: "I'm Robin, in case it matters".
_IN_CASE = re.compile(
    r"(?<=\w),? in case (?:it (?:matters|helps|is relevant|comes up)|you (?:need|want|wonder|were"
    r" wondering|ask)|I (?:mention|forget|talk))\b.*\Z"
)
_JUST_SAID = re.compile(r"(?i)(?<=\w),? just (?:so you know|saying)\Z")
_RELATIVE = re.compile(r"\s*,?\s+who(?='s\b|\s+(?:is|has|also|just|now|[a-z]+s|[a-z]+ed)(?:\s|\Z))")
_BLOCKS_BASE = re.compile(
    r"\b(?:to|will|would|can|could|should|might|may|must|let|lets|not)\b|n't\b|'ll\b"
    r"|'d\b|'(?:re|m) \w+ing\b"
)
_SKIPPED = frozenset(
    "then now also recently just currently have has never do does did not always usually finally "
    "even already still really am was used no".split()
)
# Third persons and pasts that are nouns or participles at least as often.
# "And is allergic to nuts", unlike "and is it warm".
_OF_SAME = re.compile(
    r"(?:is|has|was|are|am|were) (?!(?:it|this|that|there|he|she|they|I|you|my|your|the)\b)"
)
_HAVE = re.compile(r"have (?:an?|one|two|three|four|five) ")
_NOT_ALONE = frozenset(
    "like likes works plays loves runs walks needs wants uses moves names plans goes visits drinks"
    " reads turns changes designs travels".split()
)

# "Noor's qualified", "my job's at Bosch": no possessive, as what follows gives away.
_WHO = (
    r"((?:\A|[,;:(] ?|\b(?:and|but|so|because|since|while|that|as|now|well|hi|hey),? )"
    r"(?:(?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er) (?:\w+ ){0,2})?(?![Bb]achelor|[Mm]aster|[Ll]et)"
    r"(?:[A-ZÀ-ÖØ-Þ][\w-]+|[a-z][\w-]*[a-rt-z]))"
)
_EAGER = r"(?:just|now|also|finally|recently|already|really|only|still|currently|always)"
_HAS = (
    r"been(?! cancel)|had|got|gone|moved|left|become|qualified|turned|stopped|started|quit"
    r"|retired|passed"
    r"|finished|joined|upped sticks|lost|died|broken|given|graduated|changed|decided|taken up|sold"
    r"|bought"
)
_IS = (
    r"cancelled\b|canceled\b|(?:vegan|vegetarian|coeliac|celiac|diabetic|pregnant|allergic"
    r"|divorced)\b|an? |not |no longer |back |in |at |on |off\b|from |[£$€]\d|\w{3,}ing |called "
    r"|named |\d{1,2}(?=\Z|,|\.| and\b| today\b| now\b)|married |the |my "
)
_KIN = "wife|husband|sister|brother|mum|mom|dad|son|daughter|girlfriend|boyfriend|gf|bf"
_STATES = r"(?:due|pregnant|turning|an?)\b"

# Each with a part of it that is looked for first, which is much quicker than the pattern.
# "A cat n a dog", not "the value of n in my loop".
_AND = re.compile(
    rf"\b(?!(?:{one_of('function')}|value|variable|when|where)\b)([A-Za-z]{{2,}}) n "
    rf"(?=(?:an?|my|our|some)\b|(?!(?:{one_of('function')}|equals|goes|grows)\b)[a-z])"
)
_CONTRACTIONS = (
    ("an't", re.compile(r"\b([Cc])an't\b"), r"\1annot"),
    ("on't", re.compile(r"\b[Ww]on't\b"), "will not"),
    ("n't", re.compile(r"(\w)n't\b"), r"\1 not"),
    ("'m", re.compile(r"\b[Ii]'m\b"), "I am"),
    ("'ve", re.compile(r"(\w)'ve\b"), r"\1 have"),
    ("'ll", re.compile(r"(\w)'ll\b"), r"\1 will"),
    ("'re", re.compile(r"(\w)'re\b"), r"\1 are"),
    ("'d", re.compile(r"(\w)'d (?=been\b|better\b)"), r"\1 had "),
    ("'d", re.compile(r"\b([Ii]|[Ww]e|[Hh]e|[Ss]he|[Tt]hey)'d\b"), r"\1 would"),
    ("'s", re.compile(rf"{_WHO}'s (?=(?:{_EAGER} )*(?:{_HAS})(?![\w-]))"), r"\1 has "),
    ("'s", re.compile(rf"{_WHO}'s (?=(?:{_EAGER} )*(?:{_IS}))"), r"\1 is "),
    (
        "'s",
        re.compile(
            r"\b([Hh]e|[Ss]he|[Ii]t|who)'s (?=(?:also |just |recently )?(?:been|got|had)\b)"
        ),
        r"\1 has ",
    ),
    ("'s", re.compile(r"\b([Hh]e|[Ss]he|[Ii]t|[Tt]hat|[Tt]here|who|[Ww]hat)'s\b"), r"\1 is"),
    ("'s", re.compile(r"\b(name|birthday|favou?rite \w+)'s (?=\S)"), r"\1 is "),
    # Hurried people leave the apostrophe out; "were", "ill" and "well" are words by themselves.
    ("ifes ", re.compile(rf"\b([Ww]ife)s (?={_STATES})"), r"\1 is "),
    ("my ", re.compile(rf"\b(my (?:{_KIN}))s (?={_STATES})"), r"\1 is "),
    (
        "my ",
        re.compile(rf"\b(my (?:{_KIN}))s (?=(?:name|birthday|b-?day|age|job|school|boss)\b)"),
        r"\1's ",
    ),
    (
        " in law",
        re.compile(r"\b(mother|father|brother|sister|son|daughter) in law\b"),
        r"\1-in-law",
    ),
    ("oure ", re.compile(r"\b([Yy]ou)re (?=\S)"), r"\1 are "),
    ("hats ", re.compile(r"\b([Tt]hat|[Ww]hat)s (?=\S)"), r"\1 is "),
    ("hes ", re.compile(r"\b([Hh]e|[Ss]he)s (?=(?:just |also )?(?:been|got|had)\b)"), r"\1 has "),
    ("hes ", re.compile(r"\b([Hh]e|[Ss]he)s (?=\S)"), r"\1 is "),
    ("ve ", re.compile(r"\b([Ii]|[Ww]e|[Tt]hey|[Yy]ou)ve (?=\S)"), r"\1 have "),
    ("heyre ", re.compile(r"\b([Tt]hey)re (?=\S)"), r"\1 are "),
    (
        "nt ",
        re.compile(
            r"\b([Dd](?:o|oes|id)|[Ii]s|[Aa]re|[Ww]as|[Hh]a(?:s|ve|d)|[Cc]ould|[Ww]ould)nt "
        ),
        r"\1 not ",
    ),
    ("ant ", re.compile(r"\bcant (?=\S)"), "cannot "),
    ("NOT ", re.compile(r"\bNOT (?=[a-z])"), "not "),
    ("NEVER ", re.compile(r"\bNEVER (?=[a-z])"), "never "),
    ("e and ", re.compile(r"\A[Mm]e and ((?:my )?[\w-]+)(?= )"), r"\1 and I"),
    # "I play lol" is a game.
    (
        " lol",
        re.compile(r"(?<!play)(?<!plays)(?<!played)(?<!playing),? lol(?=\s*(?:\Z|[,.;:!?)]))"),
        "",
    ),
    (" haha", re.compile(r",? haha+(?!\w)"), ""),
    (" n ", _AND, r"\1 and "),
    ("fav", re.compile(r"\b([Ff]av)(?:e|s)?(?= \w)"), r"\1ourite"),
    (
        "like ",
        re.compile(
            r"\b(have|has|need|had|for|is|be|are|am|was|took|takes?|got|smokes?|drinks?|pays?|paid"
            r"|earns?|weighs?|costs?|runs?) like (?=\d)(?!\d+(?:s|-?[dD])\b)"
        ),
        r"\1 about ",
    ),
    ("gotta", re.compile(r"\bgotta\b"), "have to"),
    ("gonna", re.compile(r"\bgonna\b"), "going to"),
    ("wanna", re.compile(r"\bwanna\b"), "want to"),
    ("nymore", re.compile(r"\banymore\b"), "any more"),
    ("the knot", re.compile(r"\btied the knot\b"), "got married"),
    ("hitched", re.compile(r"\bgot hitched\b"), "got married"),
    ("im ", re.compile(r"\bim\b"), "I am"),
    ("Im ", re.compile(r"\bIm\b"), "I am"),
    ("i ", re.compile(r"\bi\b(?!\.)"), "I"),
    *PARAPHRASES,
)


@lru_cache(maxsize=32)
def spelt_out(text: str) -> str:
    """Contractions in full, on one line."""
    text = " ".join(text.split())
    for part, pattern, full in _CONTRACTIONS:
        if part in text:
            text = pattern.sub(full, text)
    return text


def clauses_of(sentence: Sentence) -> Iterator[Clause]:
    start = 0
    for joint in _JOINT.finditer(sentence.text):
        named = _NAMED_ASIDE.fullmatch(sentence.text, start, joint.start())
        if named or _is_apposition(sentence.text, start, joint):
            continue
        same = _OF_SAME.match(sentence.text, joint.end())
        if "and" in joint[0] and (same or _is_pair(sentence.text[start : joint.start()])):
            continue
        if joint.start() > start:
            yield from _parts(sentence, start, joint.start())
        start = joint.end()
    yield from _parts(sentence, start, len(sentence.text))


# "Lionel, my partner, 81": no subject of another clause.
_APPOSITION = re.compile(r"(?i)(?:my|our) (?P<who>[\w' -]{2,40})(?=,|;|\)|\Z)")
# "My brother, Tom, is a vet".
_NAMED_ASIDE = re.compile(r"(?:[Mm]y|[Oo]ur) [\w -]{2,30}, [A-Z]\w+")
_NAME_AT_END = re.compile(r"\b[A-Z][\w-]+\Z")


def _is_apposition(text: str, start: int, joint: re.Match[str]) -> bool:
    found = _APPOSITION.match(text, joint.end())
    if found is None or _NAME_AT_END.search(text[start : joint.start()]) is None:
        return False
    return found["who"].split()[-1].lower() in RELATIONS or role_in(found["who"]) is not None


def _is_pair(before: str) -> bool:
    """ "Piet | and I divorced": what stands before has no verb, so it is one subject."""
    words = before.lower().split()
    verbs = ("am", "are", "is", "was", "i'm", "were", "i've")
    return 0 < len(words) <= 5 and not any(
        word in BASE or word in PAST or word in THIRD or word in ING or word in verbs
        for word in words
    )


def _parts(sentence: Sentence, start: int, end: int) -> Iterator[Clause]:
    """Split off what goes on without a subject: "I live in Porto | and work at Acme"."""
    text, first = sentence.text, start
    elided = relative = False
    for joint in _inner_joints(text, start, end):
        is_relative = "who" in joint[0]
        before = text[first : joint.start()]
        same = is_relative or _OF_SAME.match(text, joint.end()) is not None
        same |= bool(_HAVE.match(text, joint.end()) and not _BLOCKS_BASE.search(before))
        if not same and not _goes_on(before, text[joint.end() : end]):
            continue
        yield _clause(sentence, first, joint.start(), elided=elided, relative=relative)
        first, elided, relative = joint.end(), not is_relative, is_relative
    yield _clause(sentence, first, end, elided=elided, relative=relative)


def _inner_joints(text: str, start: int, end: int) -> list[re.Match[str]]:
    found = [*_ELISION.finditer(text, start, end), *_RELATIVE.finditer(text, start, end)]
    return sorted(found, key=lambda joint: joint.start())


def _goes_on(before: str, after: str) -> bool:
    """Whether what follows an "and" is a verb that agrees with the one before."""
    if before.lower().endswith("born"):
        return False
    words = after.split(maxsplit=4)[:4]
    skipped = 0
    while words and words[0] in _SKIPPED:
        words, skipped = words[1:], skipped + 1
    if not words:
        return False
    word = words[0].strip(",.")
    if skipped and (word in PAST or word in BASE or word in THIRD or "used" in after[:12]):
        return True
    if word in PAST and word not in BASE:
        return True
    if len(words) < 2 or word in _NOT_ALONE:
        return word in _NOT_ALONE and len(words) > 1 and words[1] in ("at", "for", "as", "in", "to")
    if word in THIRD:
        return True
    return word in BASE and not _BLOCKS_BASE.search(before)


def _clause(sentence: Sentence, start: int, end: int, *, elided: bool, relative: bool) -> Clause:
    raw = _IN_CASE.sub("", sentence.text[start:end])
    bare = raw.strip(" \t\r\n,.;:()-—–")
    first = sentence.start + start + raw.index(bare) if bare else sentence.start + start
    # "My brother, who's a pilot": the joint took the "who".
    text = spelt_out(f"who{bare}").removeprefix("who ") if relative and bare[:1] == "'" else None
    text = text or spelt_out(bare)
    return Clause(text, first, first + len(bare), elided=elided, relative=relative)

"""What a name names: by lists, by its last word, or by the words around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from language.english import words

_PROGRAM = re.compile(
    r"^(?:the |my )?(?:user|assistant|human|ai|bot|system|tool|me|you|default|agent|model|unknown"
    r"|anonymous|function|loci|speaker ?\w?|person ?\w?|participant ?\w?|guest|client|customer"
    r"|agent ?\d*|ai assistant|virtual assistant|customer service)$|gpt|claude|gemini|copilot|llama"
    r"|mistral|deepseek|qwen|\bbard\b|openai|anthropic|\bgrok\b|\bo[134]\b"
)
_PERSONAL = re.compile(r"[^\W\d_][^\d_/@#:]*")
_LONGEST_NAME = 4


def is_personal(speaker: str) -> bool:
    """Whether a speaker's name is a person's, rather than a role or a program."""
    name = speaker.strip()
    if not _PERSONAL.fullmatch(name) or len(name.split()) > _LONGEST_NAME:
        return False
    return not is_program(name)


def is_program(name: str) -> bool:
    """Whether a name says which program it is ("Assistant", "gpt-4o"); also true of no name."""
    plain = name.strip().lower()
    return not plain or _PROGRAM.search(plain) is not None


_KIN = (
    r"(?:friend|buddy|sister|brother|mom|mum|mother|dad|father|son|daughter|wife|husband|partner"
    r"|boyfriend|girlfriend|fianc[eé]e?|cousin|uncle|aunt|niece|nephew|grandma|grandpa|grandmother"
    r"|grandfather|boss|manager|colleague|coworker|co-worker|teammate|roommate|neighbou?r|teacher"
    r"|professor|doctor|therapist|dentist|coach|trainer|mentor|tutor|client|landlord|dog|cat|puppy"
    r"|kitten|pup|kitty|horse|rabbit|hamster|parrot|pet|baby|toddler|bestie|pal)"
)
_BEFORE_PERSON = re.compile(
    rf"(?i)(?:\b{_KIN}s?,?(?: is| was|'s)?(?: named| called|:)?|\b(?:named|name is|name's"
    rf"|called) (?:him|her|it)?|\b(?:Dr|Mr|Mrs|Ms|Prof|Professor|Aunt|Uncle|Coach|Sister|Brother"
    rf"|Grandma|Grandpa|Dear)\.?|\bmy name is|\b{_KIN}s? (?:and|&)) ?$"
)
_A_PET = rf"(?:{'|'.join(sorted(words('pets')))})"
_OWN = r"(?:my|our|your|his|her|their) (?:[\w'’-]+ ){0,2}"
# "The dog Anna adopted" is no dog called Anna.
_BEFORE_PET = re.compile(
    rf"(?i)(?<!hot )\b(?:{_OWN}(?<!hot ){_A_PET}|{_A_PET}['’]s name is"
    rf"|{_A_PET}s?,? (?:(?:who |which |that )?(?:is |was |are )?|['’]s )(?:named|called)) $"
)
_AFTER_PET = re.compile(
    rf"(?:,| is) (?:my|our|his|her|their) (?:\w+ )?{_A_PET}"
    r"(?=\Z|[,.;:!?)]| (?:and|but|who|now)\b)"
)
_BEFORE_PLACE = re.compile(
    r"(?i)\b(?:(?:live|lives|lived|living|born|based|located|stayed|staying|vacation|vacationing"
    r"|holiday|apartment|flat|house|grew up|hometown|arrived) (?:in|at|near|to)|(?:move|moves|moved"
    r"|moving|travel|traveled|travelled|traveling|travelling|trip|trips|flight|flights|fly|flew"
    r"|flying|drive|drove|driving|relocate|relocated|relocating|tour|road trip) (?:to|from|around"
    r"|through)|(?:city|town|village|island|state) of) $"
)
_BEFORE_EMPLOYER = re.compile(
    r"(?i)\b(?:(?:work|works|worked|working|job|position|internship|intern|role|interview"
    r"|interviewing) at|employed by|(?:work|works|worked|working) for) $"
)
_GREETING = re.compile(
    r"(?i)(?:^|[.!?,\n]\s*)(?:hey|hi|hello|thanks|thank you|wow|yeah|yep|sorry|congrats|bye|oh"
    r"|good (?:morning|evening|night)|dear|absolutely|totally|awesome|cool|aw+|you too)"
    r"[ ,]+(?:there,? )?$"
)
_AFTER_PERSON = re.compile(
    r"(?:['’]s (?:birthday|house|place|wedding|mom|dad|sister|brother|wife|husband|party|baby"
    rf"|family|room)\b|,? who\b| and I\b| said\b| says\b| told\b| thinks\b| asked\b"
    rf"|, my (?:\w+ )?{_KIN}\b)"
)


# Before a name that is on no list.
_BEFORE_ACTED_ON = re.compile(
    r"(?i)\b(?:told|asked|met|texted|rang|phoned|emailed|messaged|married|marry|hugged|invited"
    r"|thanked|goodbye to|engaged to|dating) $"
)
_AFTER_ACTING = re.compile(
    r"(?:,? (?:says?|said|tells|told|asks|asked|thinks|thought|wants|wanted|gave|gives|laughed"
    r"|laughs|smiled|cried|cries|rang|phoned|texted|wrote|writes|turned|stood|stands|came|comes"
    r"|went|goes|sent|sends|brought|brings|looked|looks|hates|hated|loves|loved|likes|liked|knows"
    r"|knew|calls|called|drove|drives|made me|helped|helps|cooked|cooks|sings|sang|sleeps|slept"
    r"|died|retired|and (?:I|me)|is (?:my|his|her|our|\d)|has her|has his|read|reads)\b"
    r"|['’]s (?:mum|mother|father|brother|son|daughter|kids|children|boyfriend|girlfriend|dog|cat"
    r"|car|kitchen|flat|garden|hair|voice|hands|grave|funeral|desk|job)\b)"
)
_BEFORE_LOCATED = re.compile(
    r"\b(?:in|near|outside|around"
    r"|(?:is|was|are|am|'s|’s|'m|’m|came|come|back|home|drove|flew) from) $"
)
_BEFORE_SHOP = re.compile(
    r"(?i)\b(?:bought|buy|got|get|ordered|order|sale|clearance|shop|shopped|shopping|store"
    r"|available|watched|watch|watching|stream|streaming|delivered|subscription|subscribed|coupons?"
    r"|picked (?:it|them|this|one|some) up)\b(?: (?!and\b)[\w'’-]+){0,4} (?:at|from|on|to) $"
)
_BEFORE_TOOL = re.compile(
    r"(?i)\b(?:using|use|used|uses|via|(?:library|libraries|tool|tools|framework|service|app"
    r"|package) (?:like|such as|called)|installed|install|installing|implement|implementing"
    r"|integrate|integrating|configure|configuring|configured|deploy(?:ed|ing)? (?:on|to)) $"
)
_BEFORE_THING = re.compile(r"(?i)\b(?:my|our|your|his|her|their|its|an?|the|old|new|second-hand) $")
# "The Ballarat job" is a job.
_AFTER_MODIFIER = re.compile(
    r" (?!(?:is|was|has|had|that|which|and|or|but|in|on|at|for|with|to|of|from|as|when|so|because"
    r"|again|now|today|yesterday)\b)[a-z]"
)
_AFTER_PREPOSITION = re.compile(r"\b(?:in|on|at|of|from|near) (?:[A-Z]\w+ )?$")


# Cues that decide only where nothing better is known.
_WEAK_BEFORE = {
    "acts": _BEFORE_ACTED_ON,
    "located": _BEFORE_LOCATED,
    "shop": _BEFORE_SHOP,
    "tool": _BEFORE_TOOL,
    "thing": _BEFORE_THING,
}


def is_greeted(before: str, after: str) -> bool:
    """Whether the name is spoken to: "Thanks, Ann!", "… you too, Ann!"."""
    if _GREETING.search(before):
        return after[:1] in ("!", "?", ",", ".", "")
    return before.endswith(", ") and after[:1] in ("!", "?")


def cues(before: str, after: str) -> Iterator[str]:
    """What the words around a name say it is; "someone" is a weaker "person", or a pet."""
    yield from _strong_cues(before, after)
    yield from _weak_cues(before, after)


def _strong_cues(before: str, after: str) -> Iterator[str]:
    if is_greeted(before, after) or _BEFORE_PERSON.search(before):
        yield "person"
    if _BEFORE_PET.search(before) or _AFTER_PET.match(after):
        yield "pet"
    if _AFTER_PERSON.match(after):
        yield "someone"
    if _BEFORE_PLACE.search(before):
        yield "place"
    if _BEFORE_EMPLOYER.search(before):
        yield "organisation"


def _weak_cues(before: str, after: str) -> Iterator[str]:
    for cue, pattern in _WEAK_BEFORE.items():
        if pattern.search(before) and not (cue == "thing" and _AFTER_MODIFIER.match(after)):
            yield cue
    if _AFTER_ACTING.match(after) and not _AFTER_PREPOSITION.search(before):
        yield "acts"


def opens_sentence(before: str) -> bool:
    """Whether what follows has its capital only for standing at the beginning."""
    trimmed = before.rstrip(" \"“'(*•")
    # Beyond the letters and signs of any alphabet there are only pictures.
    return not trimmed or trimmed[-1] in ".!?:;\n-–—•*|)…" or trimmed[-1] > "\u2300"


_ENDINGS = {
    ending: kind
    for kind, endings in {
        "place": "park beach lake river island islands mountain mountains street avenue square"
        " valley bay canyon forest desert museum gallery cathedral temple palace castle airport"
        " station bridge harbor harbour zoo garden gardens falls coast peninsula county village"
        " library theater theatre stadium arena cafe café restaurant hotel mall plaza house",
        "organisation": "inc corp corporation llc ltd gmbh university college institute bank"
        " foundation company association hospital academy committee agency society council"
        " department ministry school church clinic airlines records studios ventures brewery"
        " bakery league union",
        "event": "festival conference marathon cup olympics parade convention summit expo fair"
        " tournament championship championships hackathon gala awards fest prix carnival symposium",
        "item": "show podcast guitar",
    }.items()
    for ending in endings.split()
}
_FRONTS = {"mount": "place", "mt.": "place", "lake": "place", "university": "organisation"}
_LISTS = {"event": "events", "place": "places", "organisation": "organisations", "item": "software"}
# Words as well as names: a capital at the beginning of a sentence is no proof.
_WORDS_TOO = frozenset(
    "nice reading turkey mobile buffalo phoenix gap target notion zoom oracle thrive rei intel jeep"
    " reddit unity rust swift vue bali java ruby patagonia python blender illustrator mit amazon"
    " orange flask spring express go".split()
)


# What these make is no thing to own.
_MAKES_NO_ITEMS = frozenset(
    "mit stanford harvard yale princeton caltech ucla unicef unesco nato fbi cia nasa disney bbc"
    " cnn espn nbc cbs universal studios".split()
)


@dataclass(slots=True)
class Evidence:
    """What speaks for a name in one window."""

    within: int = 0  # Times within a sentence, where a capital means something.
    opening: int = 0
    lowercase: bool = False  # The window has it without capitals, too.
    english: bool = True  # The message is in English, so that its grammar can be read.
    cues: Counter[str] = field(default_factory=Counter)

    def add(self, other: Evidence, *, english: bool) -> None:
        """Count what another message has of the name."""
        self.within += other.within
        self.opening += other.opening
        self.cues += other.cues
        self.english = self.english and english


def kind_of(name: str, seen: Evidence) -> str | None:
    """One of `Entity.Kind`; None if the name may be no name at all."""
    listed = listed_kind(name)
    if listed is not None:
        return _sure_of_listed(name, listed, seen)
    return (
        _by_ending(name, seen)
        or _as_pet(name, seen)
        or _as_person(name, seen)
        or _by_cue(name, seen)
        or _by_grammar(name, seen)
    )


def is_word_too(name: str) -> bool:
    """Whether a first name is also a common word: "Will", "Grace"."""
    return name.lower() in words("also_words")


@lru_cache(maxsize=10_000)
def listed_kind(name: str) -> str | None:
    plain = name.lower().replace("’", "'").removeprefix("the ")
    return next((kind for kind, listing in _LISTS.items() if plain in words(listing)), None)


def _sure_of_listed(name: str, kind: str, seen: Evidence) -> str | None:
    plain = name.lower()
    if kind == "place" and plain in words("first_names") and not seen.cues["place"]:
        # "Florence", "Sydney": a person as soon as anything says so.
        return "person" if seen.cues["person"] or seen.cues["someone"] else kind
    if plain in _WORDS_TOO:
        is_proved = seen.within and (kind != "place" or seen.cues["place"])
        return kind if is_proved else None
    return kind


def _by_ending(name: str, seen: Evidence) -> str | None:
    parts = name.lower().rstrip(".").split()
    if len(parts) < 2 or seen.cues["person"]:
        return None
    if parts[-1] in _ENDINGS:
        return _ENDINGS[parts[-1]]
    if parts[0] in _MAKES_NO_ITEMS:
        return "organisation"
    if parts[0] in words("organisations") - _WORDS_TOO or parts[0] == "amazon":
        return "event" if parts[-1] in ("day", "sale", "sales") else "item"
    return _FRONTS.get(parts[0])


def _as_pet(name: str, seen: Evidence) -> str | None:
    """ "Our dog Pepper"; a name that is also a place needs more, as of people."""
    if not seen.cues["pet"] or " " in name or not _could_be_someones(name):
        return None
    return "pet" if _as_person(name, seen) or _is_odd(name) else None


def _as_person(name: str, seen: Evidence) -> str | None:
    parts = name.split()
    if len(parts) > 3 or not all(map(_could_be_someones, parts)):
        return None
    if parts[0].lower() in words("first_names"):
        is_named = all(map(_is_odd, parts[1:])) if parts[1:] else _proves_first_name(name, seen)
        return "person" if is_named else None
    is_called_so = seen.cues["person"] > seen.cues["place"] and len(parts) <= 2
    is_name = len(parts[0]) > 2 and all(map(_is_odd, parts)) and not seen.lowercase
    return "person" if is_called_so and is_name else None


def _could_be_someones(part: str) -> bool:
    letters = part.translate({ord(sign): None for sign in "-'’."})
    return letters.isalpha() and not (part.isupper() and len(part) > 2)


def _proves_first_name(name: str, seen: Evidence) -> bool:
    if seen.cues["place"]:
        return False
    if is_word_too(name):
        return bool(seen.cues["person"]) or (seen.within > 0 and bool(seen.cues["someone"]))
    return bool(seen.within or seen.cues or seen.opening)


def _is_odd(word: str) -> bool:
    """Not an everyday English word that happened to get a capital."""
    plain = word.lower()
    everyday = (
        "verbs",
        "verbs_or_nouns",
        "empty",
        "software",
        "organisations",
        "bland",
        "activities",
    )
    return not any(
        plain in words(listing) or plain.removesuffix("s") in words(listing) for listing in everyday
    )


def _by_cue(name: str, seen: Evidence) -> str | None:
    if not seen.within or seen.lowercase or any(map(str.isdigit, name)) or name.isupper():
        return None
    return next((kind for kind in ("organisation", "place") if seen.cues[kind]), None)


_LONGEST_UNKNOWN = 60
_VERSIONED = re.compile(r"[^\W\d][\w.-]*(?: [\w.-]*[^\W\d])? v?\d+(?:\.\d+)+")
_COINED = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+|[A-Z]\w+\.(?:js|com|io|org|net|ai)|GitHub \w+")
# A month or a day is no place to be in, and a language no thing; an error's name is no name.
_NEITHER = re.compile(
    r"(?i)(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|christmas|easter|ramadan|english|french|german"
    r"|spanish|italian|portuguese|polish|turkish|russian|arabic|hindi|chinese|japanese|korean|dutch"
    r"|latin|greek|irish|welsh|\w+(?:error|exception|notfound)|god|lord|state|internet|bible)"
    r"(?: \d+)?"
)


def _by_grammar(name: str, seen: Evidence) -> str | None:
    """What an unknown name names, by how the sentence uses it; within a sentence only."""
    if not seen.within or seen.lowercase or not seen.english or len(name) > _LONGEST_UNKNOWN:
        return None
    if _NEITHER.fullmatch(name):
        return None
    if _VERSIONED.fullmatch(name) or _COINED.fullmatch(name):
        return "item"
    letters = name.replace("-", "").replace(" ", "")
    if len(name) < 3 or name.isupper() or not all(map(_is_odd, name.split()[:1])):
        return None
    if seen.cues["tool"]:
        return "item"
    return _by_use(name, seen) if letters.isalpha() else None


def _by_use(name: str, seen: Evidence) -> str | None:
    is_a_thing = seen.cues["thing"] > 0
    if seen.cues["acts"] and not is_a_thing and len(name.split()) <= 2:
        return "person"
    if seen.cues["shop"]:
        return "organisation"
    if seen.cues["located"] and not is_a_thing and not seen.cues["acts"]:
        return "place"
    return "item" if is_a_thing and not seen.cues["located"] else None

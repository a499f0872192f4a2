"""Likes, dislikes, preferences and pastimes; habits: what somebody does again and again, or never,
such as "I run every morning".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from language import english
from language.english.facts.rules import (
    Claim,
    Mode,
    Options,
    When,
    row,
    rows_of,
    table_of,
    without_reasons,
)
from language.english.facts.verbs import FORMS, Tense, Verb
from language.english.facts.vocabulary import IDENTITIES, NUMBER_WORD, WEEKDAY
from language.english.grammatical_person import sentence, third
from language.facts import Candidate

_PASTIMES = f"(?:{english.one_of('pastimes')})"
_LIKED = r"(?P<o>.+)"
_PLAYED = (
    r"(?P<o>(?:the )?(?:(?!an?\b|my\b|our\b|some\b|with\b)[a-z-]+ )?"
    rf"(?:{english.one_of('played')})(?![\w-])(?:,? (?:and|or) (?:the )?\w+)?)"
)
_DONE = rf"(?P<o>(?:\w+ )?(?:{english.one_of('practised')}))"
OFTEN = re.compile(
    r"(?i)\b(?:every (?:other |second |single |two |three )?(?:day|week|weekend|month|year|morning"
    r"|evening|night|afternoon|summer|winter|mon|tues|wednes|thurs|fri|satur|sun)\w*|(?:once|twice"
    r"|thrice|(?:two|three|four|five|six|several|\d[\d.]*|a few"
    r"|a couple(?: of)?)(?: or \w+)? (?:times"
    r"|days|nights|mornings|evenings|hours|km|miles)) (?:a|per|each|every) (?:day|week|month|year)"
    r"|daily|weekly|monthly|(?:(?:on |at |in the |most )?(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days)|(?:on|at) (?:the )?weekends?|in the (?:mornings|evenings|afternoons)|most (?:days"
    r"|mornings|evenings|nights|weekends)|each (?:day|morning|evening|week|night)|regularly"
    r"|before work|after work|to work|all year round|instead)\b"
)
# "It was rewarding and reminded me why I love this" puts the rest of a sentence in its place.
_A_CLAUSE = re.compile(
    r"\A(?:based|called|named|made) (?:on|by)\b|\breminded (?:User|me)\b|\bmaking (?:him|her|them) "
    r"|\b(?:User|me) (?:why|that|how|is|was|has|had)\b"
)
_NOT_LIKED = tuple(english.words("not_liked"))


def liked(words: str) -> bool:
    """Whether it is a lasting taste rather than a reaction to what was just said."""
    low = re.sub(r"\A(?:the (?:smell|taste) of|being called) (?=[\w-]+\Z)", "", words.lower())
    if low.startswith("my "):
        return len(words.split()) <= 3 and not low.endswith((" ideas", " suggestions", " way"))
    if low.startswith(("the ", "our ", "their ", "his ", "being ", "not ", "doing something")):
        named = any(part[:1].isupper() for part in words.split()[1:])
        return named and " they have " not in low and not low.endswith((" ideas", " suggestions"))
    return (
        not low.startswith(_NOT_LIKED)
        and not _A_CLAUSE.search(words)
        and len(words.split()) <= 8
        and not low.endswith((" to", " like", " of"))
        and not low.endswith((" ideas", " suggestions", " tips", " options", " list", " examples"))
    )


def _is_collected(words: str) -> bool:
    return liked(words) and not words.startswith(("data", "all", "and", "information", "feedback"))


def _is_preferred(words: str) -> bool:
    if " over " in words or " to " in words[3:] or " than " in words or " instead of " in words:
        return True
    vague = words.lower().startswith(("to ", "if", "that", "the ", "it", "not ", "a ", "my "))
    return not vague and (" " in words or words[:1].isupper() or words.endswith("s"))


_LIKES: Options = {"type": "preference", "stance": "positive", "accepts": liked, "past": False}
_DISLIKES: Options = {"type": "preference", "stance": "negative", "accepts": liked, "past": False}
_likes = rows_of("likes", "like {o}")
_is_a = rows_of("is_a", "be a {o}")
_dislikes = rows_of("dislikes", "dislike {o}", **_DISLIKES)
_does = rows_of("does", "{verb} {o}")
_ROWS = (
    _likes(rf"like love enjoy adore: {_LIKED}", "{verb} {o}", animals=True, **_LIKES),
    _likes(
        r"like love: to (?P<o>(?:hike|swim|cook|bake|paint|draw|read|travel|run|dance|sing|garden"
        r"|ski|surf|sail|climb|fish|knit|cycle|camp|write|sketch|ride|dive|skate)\b.*)",
        "{verb} to {o}",
        type="preference",
        stance="positive",
    ),
    _likes(
        r"be: (?:an? )?(?:big |huge |massive |die-hard |real |great |avid |lifelong "
        r"|long-time )?(?:fan of|keen on|fond of|obsessed with|passionate about|crazy about"
        r"|mad about|hooked on|addicted to|in love with|partial to|sucker for"
        r"|(?:(?:really|very|so|super) )?into) (?P<o>.+)",
        **_LIKES,
    ),
    _likes(
        r"be: an? (?:big |huge |avid |real |total )?(?P<o>(?!(?:huge|big|great"
        r"|total|avid|massive|real)\b)[\w-]+(?: [\w-]+)?) (?P<org>lover|fan"
        r"|enthusiast|nerd|geek|buff|junkie|addict|fanatic|aficionado|nut)\Z",
        "be a {o} {org}",
        **_LIKES,
    ),
    _is_a(
        r"be: an? (?P<o>(?:night owl|early bird|early riser|morning person|night person|introvert"
        r"|extrovert|perfectionist|homebody|bookworm|foodie|cat person|dog person|minimalist"
        r"|optimist|pessimist|vegetable hater|feminist|christian|catholic|muslim|jew|buddhist|hindu"
        r"|atheist|agnostic|quaker|veteran|widow|widower|(?:single|stay-at-home) (?:mother|mum|mom"
        r"|father|dad|parent)|new (?:mother|mum|mom|father|dad|parent)|people person|trans woman"
        r"|trans man|first-generation student))\b"
    ),
    row(
        r"be: the (?P<o>(?:oldest|eldest|youngest|middle(?: one| child)?|second|third) of (?:two"
        r"|three|four|five|six|seven|eight|nine|ten|\d+))(?=\Z|,| and\b"
        r"| (?:children|siblings|kids|brothers|sisters|girls|boys)\b)",
        "has_sibling",
        "be the {o}",
    ),
    _is_a(
        rf"be: (?P<o>{IDENTITIES})\b",
        "be {o}",
    ),
    _dislikes(rf"hate dislike detest loathe despise: {_LIKED}", "{verb} {o}", animals=True),
    _dislikes(r"can: (?:stand|bear|abide) (?P<o>.+)", flips=True, many=True),
    _dislikes(r"care: (?:much )?for (?!my |the )(?P<o>.+)", flips=True),
    _likes(r"can: get enough of (?P<o>.+)", flips=True, **_LIKES),
    _likes(
        r"go: (?:right |completely |really |totally |a bit )?off (?P<o>.+?)"
        r"(?: (?:a (?:bit|little)|lately|completely|altogether))?\Z",
        mode=Mode.ENDED,
        **_LIKES,
    ),
    _likes(r"fall: (?:out of love with|out with) (?P<o>.+)", mode=Mode.ENDED, **_LIKES),
    _dislikes(
        r"be: (?:(?:so|really|getting|just|getting a bit|a bit|totally) )*"
        r"(?:tired of|sick of|bored of|bored with|fed up with) (?P<o>.+)"
    ),
    _likes(r"come: (?:a)?round to (?P<o>.+?)(?: a bit| somewhat)?\Z", mode=Mode.BEGAN, **_LIKES),
    _does(
        r"play sing be: (?P<o>in (?:an?|the|my) (?:[\w-]+ )?(?:band|orchestra|quartet|team|league"
        r"|ensemble|choir|book club))\b",
        past=False,
    ),
    row(
        r"can: (?:eat|have|digest|tolerate) (?P<o>(?:any )?(?:dairy|gluten|nuts|peanuts|shellfish"
        r"|eggs|meat|wheat|lactose|milk|fish|pork|soy|sugar|spicy food|caffeine|tomatoes|onions"
        r"|mushrooms)(?:,? (?:and|or) \w+)?)",
        "diet",
        "eat {o}",
        aspect="{o}",
    ),
    _does(
        r"can: do (?P<o>\d+ (?!(?:min|hour|day|week|month|year|km|kg|am\b|pm\b))[a-z][\w-]+)\b",
        "can do {o}",
    ),
    _does(
        r"can: (?P<o>(?:hold|lift|bench(?: press)?|squat|deadlift|swim|row|cycle|walk"
        r"|run) (?:[\w-]+ )"
        r"{0,4}\d+ ?(?:kg|kilos?|lbs?|pounds|k|km|miles?|m|metres|meters|lengths|laps|minutes?"
        r"|mins?|seconds?|hours?))\b",
        "can {o}",
    ),
    row(r"can: (?:speak) (?P<o>[A-Z].+)", "speaks", "speak {o}", many=True),
    row(
        r"can: (?P<o>(?:swim|drive|cook|play (?:the )?\w+|ski|juggle|code|ride a (?:bike"
        r"|horse)))\Z",
        "knows",
        "can {o}",
    ),
    row(
        r"prefer: (?P<o>.+?(?: (?:over|to|rather than|instead of|than) .+)?)\Z",
        "prefers",
        "prefer {o}",
        type="preference",
        stance="positive",
        to_comma=False,
        accepts=_is_preferred,
    ),
    _does(rf"play: {_PLAYED}", confidence=0.85),
    _does(rf"practice practise do: {_DONE}"),
    _does(
        r"take start begin: (?:up |doing |playing |practi[sc]ing )(?P<o>[\w-]+(?: [\w-]+)?)\Z",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    _does(
        rf"stop quit: (?:doing |playing |practi[sc]ing |going )?(?P<o>(?:{_PASTIMES}"
        r"|coffee|caffeine|sugar|gluten|social media|facebook|instagram|twitter|netflix)\b.*)",
        "do {o}",
        mode=Mode.ENDED,
    ),
    _does(
        rf"pick get: (?:the |my )?(?P<o>{_PASTIMES}) (?:back )?up again\b.*",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    _does(r"keep: (?P<o>(?:honey)?bees|bonsai|tropical fish|koi|a (?:diary|journal))\b"),
    _does(r"support: (?P<o>[A-Z]\w+(?: [A-Z]\w+)*)\Z", past=False),
    _does(rf"collect: {_LIKED}", accepts=_is_collected),
    row(
        r"take drink have like: (?P<o>my (?:tea|coffee|steak|eggs|porridge) (?:black|white|strong"
        r"|weak|plain|rare|medium|scrambled|poached|fried|iced|with|without)\b.*)",
        "prefers",
        "{verb} {o}",
        type="preference",
        stance="positive",
        past=False,
    ),
    _does(r"wear: (?P<o>glasses|contact lenses|contacts|hearing aids?|braces|a hijab|size \d+)"),
    row(r"take wear: (?P<o>(?:a )?size \d+(?: shoes?)?)", "wears", "{verb} {o}"),
    _does(r"stay: (?P<o>with (?:us|me))\b.*", past=False),
    _does(r"be: (?P<o>on (?:the|a) waiting list for .+)", past=False),
    row(
        r"be: (?:\w+ )?(?P<o>good at (?!it\b|what\b)(?!.* why\b)\w+(?: \w+)?)\Z", "knows", "be {o}"
    ),
    _does(r"volunteer: (?P<o>(?:at|with|for) .+)", past=False),
)

TASTES = table_of(_ROWS)
HABIT_VERBS = english.words("habit_verbs")
# Of these it is worth knowing that somebody never does them.
AVOIDED_VERBS = frozenset(
    "do eat drink fly play drive swim cook smoke dance gamble wear ride".split()
)


_BY_ITSELF = frozenset(
    "run swim cycle jog meditate journal dance paint draw garden knit hike climb row ski surf sail"
    " commute volunteer coach foster cook bake sing read write exercise code sew".split()
)
_VAGUE = re.compile(
    r"\b(?:you|this|that|these|those|it|them|APIs?|files?|scripts?|functions?|endpoints?|servers?"
    r"|database|queries|query|cron|builds?)\b|·"
)
_USUALLY = frozenset("usually often always regularly normally typically mostly".split())
# "Sadhbh has camogie Thursdays"; what else one has "regularly" is no habit.
_WEEKDAYS = re.compile(rf"(?i){WEEKDAY}(?<=s)")
_FEW_WORDS = 6
_NOTHING_LASTING = re.compile(
    r"(?i)\A(?:anything|much|too|so|well|very|any\b|enough|my (?:best|part)|badly|a thing)"
    r"|\b(?:yet|today|tonight|now|right now|this \w+|tomorrow|unless)\b"
)
_EITHER = re.compile(r"(?i),? (?:either|neither|just|ever|at all|though|tho)\b.*")


# "I've never been to Japan", "never owned a car", "never broken a bone".
_BEEN = re.compile(
    r"be (?:to (?:an? )?[A-Z]\w+|abroad|on a (?:plane|boat|cruise|horse))|own an? |learn to "
    r"|break a |live (?:abroad|alone|in )|have (?:a (?:pet|dog|cat|car|cavity|tattoo|passport)"
    r"|any siblings)\b"
)


def habits_of(claim: Claim, tail: str, when: When) -> Iterator[Candidate]:
    """What is done again and again: "I run every morning"."""
    verb = claim.verb
    if (avoided := _avoided(claim, tail, when)) is not None:
        yield avoided
        return
    if (routine := _routine(claim, tail, when)) is not None:
        yield routine
        return
    moved = verb.lemma == "go" and tail.startswith(("up to ", "down to "))
    if moved or verb.lemma not in HABIT_VERBS or not _is_habit(verb, tail, when):
        return
    said = without_reasons(tail)
    if (
        said is None
        or len(said.split()) > 10
        or said.startswith("nothing")
        or _says_nothing(verb.lemma, said)
    ):
        return
    words = f"{verb.lemma} {said}".strip()
    over = verb.tense is Tense.USED_TO
    tense = Tense.PRESENT if verb.tense is Tense.PERFECT else verb.tense
    yield Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate="does",
        object=third(words),
        text=sentence(
            claim.person.label, third(words), tense=tense, negated=verb.negated, ended=verb.ended
        ),
        words=(claim.words,),
        negated=verb.negated,
        corrects=claim.corrects,
        valid_from=when.since,
        valid_to=claim.said_at if over else when.until,
        confidence=0.75,
    )


_AT_TIME = re.compile(
    rf"(?i)(?:(?P<up>up)|to bed|to sleep) (?:(?:at|by|before|around"
    rf"|from) )+(?P<at>(?:half past )?(?:\d[\d:.]*"
    rf"|{NUMBER_WORD}|dawn|sunrise|noon|midnight)(?: ?(?:am|pm|o'clock|in the morning))?)"
    r"(?=\Z|,| (?:every|most|on|these|now|all|each|during)\b)"
)


def _routine(claim: Claim, tail: str, when: When) -> Candidate | None:
    """ "I get up at five", of which there is one at a time, as there is of bedtime."""
    verb = claim.verb
    found = _AT_TIME.match(tail) if verb.lemma in ("get", "wake", "go") else None
    if found is None or when.at or verb.negated or verb.tense is not Tense.PRESENT:
        return None
    if re.search(r"(?i)\b(?:on|tomorrow|today)\b", tail):
        return None  # "On Mondays I get up at six" says nothing of the other days.
    aspect, says = ("getting up", "get up at") if found["up"] else ("bedtime", "go to bed at")
    says = f"{says} {found['at']}"
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate="does",
        object=says,
        text=sentence(claim.person.label, says, tense=verb.tense, negated=False, ended=False),
        words=(claim.words,),
        aspect=aspect,
        corrects=claim.corrects,
        confidence=0.75,
    )


def _avoided(claim: Claim, tail: str, when: When) -> Candidate | None:
    """ "I don't do night calls", "we never eat pork": it denies nothing that was known."""
    verb, said = claim.verb, without_reasons(tail)
    if not verb.negated or not said:
        return None
    never = verb.tense is Tense.PERFECT and "never" in verb.adverbs
    been = never and (_BEEN.match(f"{verb.lemma} {said}") is not None)
    if verb.lemma not in AVOIDED_VERBS and not been:
        return None
    if (
        not (verb.tense is Tense.PRESENT or never)
        or _VAGUE.search(tail)
        or len(said.split()) > _FEW_WORDS
    ):
        return None
    if _NOTHING_LASTING.search(said):
        return None
    words = f"{verb.lemma} {_EITHER.sub('', said)}"
    text = sentence(
        claim.person.label, third(words), tense=verb.tense, negated=True, ended=verb.ended
    )
    if never:
        words = f"{FORMS[verb.lemma][2]} {_EITHER.sub('', said)}"
        text = f"{claim.person.label} has never {third(words)}"
    said = third(words if verb.ended else f"{'never' if never else 'not'} {words}")
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        # There is one of these, which takes the place of the other.
        predicate="drinks_alcohol" if words == "drink alcohol" else "does",
        object=said,
        text=text,
        words=(claim.words,),
        negated=verb.ended,
        corrects=claim.corrects,
        valid_from=when.since,
        confidence=0.7,
    )


def _is_habit(verb: Verb, tail: str, when: When) -> bool:
    """Whether the sentence says how often or since when, or that it is over."""
    often = OFTEN.search(tail)
    lasting = verb.tense in (Tense.PRESENT, Tense.USED_TO) or (
        verb.tense is Tense.PERFECT and (when.since or often)
    )
    if not lasting or _VAGUE.search(tail) or (verb.negated and not verb.ended):
        return False
    if verb.lemma == "have" and not _WEEKDAYS.search(tail):
        return False
    is_stated = verb.tense is Tense.USED_TO or often or "never" in verb.adverbs or when.since
    is_over = verb.ended and verb.lemma in _BY_ITSELF
    return bool(is_stated or is_over or verb.adverbs & _USUALLY)


def _says_nothing(verb: str, said: str) -> bool:
    """ "I go a few times a week" does not tell where."""
    rest = OFTEN.sub("", said).strip(" ,")
    return verb not in _BY_ITSELF and (
        not rest or rest in ("professionally", "a lot", "out", "online", "together")
    )

"""Names, ages, birthdays, measures, and being with somebody; where people live and come from, whom
they live with, what they own.
"""

from __future__ import annotations

import re

from language import english
from language.english.facts.rules import Mode, Options, bare, row, rows_of, table_of
from language.english.facts.vocabulary import (
    DIET,
    IDENTITIES,
    MONTH,
    NATION,
    NOT_NAMES,
    NUMBER_WORD,
    WEEKDAY,
    is_first_name,
    is_product,
    may_be_name,
    role_in,
    small_name,
)
from language.facts import USER

_SUM = (
    r"(?:[€$£] ?\d[\d.,]*k?|\d[\d.,]*k|\d[\d.,]*\d(?: ?(?:€|euros?|dollars|pounds|quid|francs))?)"
    r"(?: ?(?:€|euros?|dollars|pounds|quid|francs|AUD|USD|CAD|EUR|GBP|CHF|SEK|NOK|DKK|NZD|LPA))?"
)
_AGE = rf"(?P<o>\d{{1,2}}(?: months| weeks)?|1[01]\d|{NUMBER_WORD})"
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž][a-zà-öø-ÿā-ž'’-]{1,14}(?: [A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ'’-]+){0,2}")
_NATION = re.compile(NATION, re.IGNORECASE)


def _is_somebody(words: str) -> bool:
    """Somebody has a name, or is one of a kind: "an architect"; not "vim 14 years"."""
    said = bare(words)
    mine = said != words and words.startswith(("my", "the"))
    return said[:1].isupper() or (" " not in said and not mine) or role_in(said) is not None


def is_name(words: str) -> bool:
    """A name is written with a capital, and is no nation, month or trade."""
    return (
        _NAME.fullmatch(words) is not None
        and words.split()[0] not in NOT_NAMES
        and not _NATION.fullmatch(words)
        and role_in(words) is None
        and not words.lower().endswith(("ing", "ed"))
    )


# "I'm Catholic", "I'm Aquarius".
_WHAT_ONE_IS = re.compile(
    rf"(?i)(?:{IDENTITIES}|{DIET}|home|unemployed|deaf|blind|autistic|dyslexic"
    r"|diabetic|black|labour|democrat|republican|tory"
    r"|aries|taurus|gemini|cancer|scorpio|sagittarius|capricorn|aquarius|pisces)\b"
)


def _is_own_name(words: str) -> bool:
    said = small_name(words) or words
    return not _WHAT_ONE_IS.match(words) and may_be_name(said) and is_name(said)


_NAMES: Options = {"accepts": _is_own_name, "confidence": 0.9}
_name = rows_of("name", "be named {o}")
_age = rows_of("age", "be {o} years old")
_partner = rows_of("partner", "be together with {o}")
_relationship_status = rows_of("relationship_status", "be {o}")
_salary = rows_of("salary", "{verb} {o}")
_is_a = rows_of("is_a", "be {o}")
_ROWS = (
    _name(
        r"be: (?:now )?(?:called|named) (?P<o>[\w'-]+(?: [A-Z][\w'-]+)?)", animals=True, **_NAMES
    ),
    _name(r"be: (?P<o>[^\s,]+(?: [A-Z][^\s,]+){0,2})(?=\Z|,| from | and | btw\b)", **_NAMES),
    _name(r"go: by (?P<o>[A-Z]\w+)\Z", "go by {o}", **_NAMES),
    _age(
        rf"be: (?:just )?(?:turning |almost |nearly )?{_AGE}(?: years? old"
        rf"| years? of age| years young| yo\b| y/o)?"
        r"(?=\Z|,(?!\d)| (?:and|but|so|from (?!the|an?\b)) ?)",
        animals=True,
        past=False,
        confidence=0.9,
    ),
    _age(rf"be: an? {_AGE}(?:[- ]years?[- ]old| ?y/?o)\b", animals=True, past=False),
    _age(
        rf"turn: {_AGE}\b(?! (?:it|the|to|off|on))", mode=Mode.BEGAN, animals=True, confidence=0.9
    ),
    _age(r"have: my (?P<o>\d\d)(?:st|nd|rd|th) birthday\Z", mode=Mode.BEGAN),
    _partner(
        r"be: (?:together )?with (?P<o>[A-Z]\w+)\Z",
        kind="person",
        since=True,
        accepts=is_first_name,
    ),
    _name(r"change: my (?:\w+ )?name (?:from \w+ )?to (?P<o>[A-Z]\w+)", mode=Mode.BEGAN),
    row(
        r"be: an? (?:\w+ )?(?:mum|mom|mother|dad|father|parent) (?:of|to) (?P<o>two|three|four|five"
        r"|six|twins|\d)\b",
        "has_child",
        "have {o} children",
    ),
    row(
        r"be: (?:married) to (?P<o>.+)",
        "married_to",
        "be married to {o}",
        kind="person",
        accepts=_is_somebody,
    ),
    row(
        r"marry: (?P<o>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)(?=\Z|,| (?:and|at|in|on|last|this)\b)",
        "married_to",
        "be married to {o}",
        mode=Mode.BEGAN,
        kind="person",
        accepts=is_name,
    ),
    *(
        row(
            rf"{verb}: {how} to (?P<o>[A-Z].+)",
            f"{how}_to",
            f"be {how} to {{o}}",
            mode=mode,
            kind="person",
        )
        for verb, how, mode in (
            ("be", "engaged", Mode.STATE),
            ("get", "married", Mode.BEGAN),
            ("get", "engaged", Mode.BEGAN),
        )
    ),
    _relationship_status(
        r"be: (?:happily |newly |recently |currently |still )?(?P<o>married|single|divorced|engaged"
        r"|widowed|separated|in a (?:\w+ )?relationship)(?=\Z|,| and | with | for | again)"
    ),
    _relationship_status(
        r"get: (?P<o>divorced|engaged|married)\b(?! (?:to (?:[A-Z]|the\b|this\b|an?\b)"
        r"|(?:in|with) (?:the|this|an?)\b))",
        mode=Mode.BEGAN,
    ),
    _partner(r"break: up with (?P<o>.+)", mode=Mode.ENDED),
    _partner(
        r"see date: (?:(?:an? |this )?(?:[\w-]+ )?(?:guy|girl|man|woman|lady|bloke|someone"
        r"|somebody)(?:,? (?:called|named))? )(?P<o>[A-Z]\w+)",
        "date {o}",
        kind="person",
    ),
    _partner(r"date: (?P<o>[A-Z]\w+)", "date {o}", kind="person", accepts=is_first_name),
    row(r"report: (?:directly )?to (?P<o>[A-Z].+)", "reports_to", "report to {o}", kind="person"),
    row(
        r"be: (?:\d[\d.,]* ?[a-z]+ and )?(?P<o>\d[\d.,]* ?(?:m|cm|metres|meters|feet|ft"
        r"|foot)\b(?: ?\d+)?"
        r"|\d'\d+\"?)(?: tall)?",
        "height",
        "be {o} tall",
    ),
    _salary(
        rf"earn make: (?:(?:about|around|roughly|nearly) )?(?P<o>{_SUM}"
        r"(?: (?:an?|per) (?:year|month|week|hour))?)"
        r"(?=\Z|,(?!\d)| and | before | as | in | at )"
    ),
    _salary(
        rf"be: on (?P<o>{_SUM}(?: (?:a|per) (?:year|month))?)(?=\Z|,(?!\d)| and | as | in | at )",
        "be on {o}",
    ),
    row(
        rf"pay: (?P<o>{_SUM})(?: (?:a|per|every) (?:month|week))?(?:(?: (?:in|of"
        rf"|for))?(?: my)? rent| for (?:our |my |an? |the )?(?:\d+ ?(?:sqm|m2|m²|square)"
        r"|(?:[\w-]+ ){0,3}(?:flat|apartment|room|studio)\b).*)",
        "rent",
        "pay {o} in rent",
    ),
    row(rf"rent: .+ for (?P<o>{_SUM})(?: (?:a|per) month)?\Z", "rent", "pay {o} in rent"),
    row(rf"owe: (?P<o>.+? {_SUM})\Z", "owes", "owe {o}"),
    row(r"work: (?P<o>\w+ (?:hours|days) (?:a|per) week)\b", "does", "work {o}", past=False),
    row(
        r"weigh: (?P<o>\d[\d.,]* ?(?:kg|kilos?|lbs?|pounds|stone|grams|g)\b.*)",
        "weight",
        "weigh {o}",
        animals=True,
    ),
    row(
        r"be: (?:[\d.'\"]+[\w ]* and )?(?:about |now |only )?(?P<o>\d[\d.,]* ?(?:kg|kilos|lbs"
        r"|pounds"
        r"|stone))(?=\Z|,(?! an?\b)| and\b)",
        "weight",
        "weigh {o}",
        past=False,
    ),
    row(
        r"be: (?:an? |my )?(?:best |good |close |old )?friends? (?:with|of) (?P<o>[A-Z]\w+)",
        "friend_of",
        "be friends with {o}",
        kind="person",
    ),
    _is_a(r"be: (?P<o>an only child)\b"),
    _is_a(
        r"be: an? (?P<o>(?:three-legged |rescue |black |white |golden |tabby |grey |young |old "
        rf"|big |small )*(?:{english.one_of('breeds')})(?: mix)?)\b",
        "be a {o}",
        animals=True,
    ),
)

IDENTITY = table_of(_ROWS)


_DWELLING = (
    r"(?:an?|the|our|my)(?: [\w-]+){0,3} (?:flat|apartment|house|studio|van|cottage|bungalow|farm"
    r"|farmhouse|townhouse|condo|dorm|houseboat|loft|room|caravan|trailer|cabin|floor)"
)
_NO_PLACE = (
    r"(?!(?:fear|peace|hope|the moment|the past|the present|the area|this|that|an area|harmony"
    r"|poverty|the same|the middle of nowhere|person|general|love|a world|a bubble|denial|town\b"
    r"|my car|touch|constant|exile|squalor|luxury|between)\b)"
)
_SEATS = frozenset("seat sofa couch chair bench table desk bed window queue lane row".split())
# "Near the river" is in no river.
_NEAR = r"(?:just )?(?:outside|near) (?:of )?(?!(?:the|an?|my|our|some) (?-i:[a-z]))"
_IN = rf"(?:{_NEAR}|in |at )(?!{_DWELLING}\b){_NO_PLACE}(?P<o>.+)"
_THINGS = english.one_of("possessions")
# "A boat cover" is no boat.
_AFTER = "|".join(sorted(map(re.escape, english.words("function") | english.words("adverbs"))))
_NO_COMPOUND = (
    rf"(?=\Z|\s*[^\w\s-]| (?:{_AFTER}|full|\w+ing|\w+ed|\w+ly|(?-i:[A-Z])\w+|\d\w*)(?!\w))"
)
_OWNED = (
    rf"(?P<o>(?:an?(?: pair of)?|the|two|three|four|\d+|around \d+|my own|our own|our first"
    rf"|my first"
    rf"|some)(?: (?!(?:at|in|with|for|of|to|and|on)\b)[\w'-]+){{0,4}}? ?\b(?:{_THINGS})s?(?: "
    rf"(?:called|named) [A-Z]\w+| (?:\d+\w?|(?-i:Pro|Max|Air|SE|XL|XS)|mini"
    rf"|plus)\b)*)\b{_NO_COMPOUND}(?! that needs| of (?!my|our|his|her|their))"
)
_MAKES = (
    r"(?!.* for a living)(?P<o>(?:an? |the |my )?(?:[\w-]+ ){0,3}"
    rf"(?:{english.one_of('driven')})(?: [\w-]+){{0,3}})"
)


def _is_place(words: str) -> bool:
    """A place has a capital, or is one word of somebody who writes none, or a kind of place."""
    if words.startswith(("a ", "an ")) and is_product(bare(words)):
        return False
    if words.split()[-1].lower() in _SEATS or re.match(rf"(?:{WEEKDAY}|{MONTH}\b)", words):
        return False
    return len(words) >= 2 and not words.lower().startswith(("a team", "a hurry", "pain", "charge"))


def _names_a_place(words: str) -> bool:
    return any(part[:1].isupper() for part in words.split()) and not words.startswith("I ")


def _is_company(words: str) -> bool:
    return len(words.split()) <= 4 and re.search(r"\b(?:is|are|was|has)\b", words) is None


# "We moved from Slack to Discord."
_TOOLS = "|".join(map(re.escape, sorted(english.words("software") | english.words("products"))))
_TOOL = rf"(?!java\b)(?:{_TOOLS})"  # Java is an island, too.
_TOWN = r"(?P<o>[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
_LIVES: Options = {"kind": "place", "accepts": _is_place, "object": "{place}", "to_comma": False}
_ORIGIN: Options = {"kind": "place", "object": "{place}", "accepts": _names_a_place}
_lives_in = rows_of("lives_in", "live in {o}", **_LIVES)
_lives_with = rows_of("lives_with", "live with {o}")
_from = rows_of("from", "be from {o}", **_ORIGIN)
_owns = rows_of("owns", "own {o}")
_HOME_ROWS = (
    _lives_in(rf"live reside: {_IN}"),
    _lives_in(r"live: on the [\w ]{3,30}? in (?P<o>[A-Z].+)"),
    _lives_in(rf"live: in {_DWELLING} (?:in|near|outside) (?P<o>[A-Z].+)"),
    *(
        row(rf"live: {on} (?P<o>{_DWELLING})\b", "lives_in", f"live {on} {{o}}", aspect="home")
        for on in ("in", "on")
    ),
    _lives_with(
        r"share: (?:an?|the|my|our) (?:[\w-]+ )?(?:flat|house|apartment|room|place"
        r"|studio) with (?P<o>.+)",
        many=True,
        accepts=_is_company,
    ),
    _lives_in(r"move: in with .+? in (?P<o>[A-Z].+)", mode=Mode.BEGAN),
    _lives_with(r"move: (?:back )?in with (?P<o>.+)", mode=Mode.BEGAN),
    _lives_with(r"live: (?:together )?with (?P<o>.+)", many=True),
    _lives_with(r"live: with (?:us|me)\b(?P<o>)", f"live with {USER}", object=USER, kin=True),
    _lives_with(r"move: out\b(?P<o>)", f"live with {USER}", object=USER, kin=True, mode=Mode.ENDED),
    _lives_with(r"live: (?P<o>alone|by myself|on my own)", "live alone", object="nobody"),
    _lives_in(rf"be: (?:based|living|located|settled|residing) {_IN}"),
    _lives_in(
        r"move relocate emigrate immigrate: (?:back |over |down |up |out |away )?(?:here )?"
        rf"(?:from (?!(?:{_TOOLS})\b)[A-Z][\w]+ )?(?:to|into) (?!{_TOOL}\b)(?P<o>.+)",
        mode=Mode.BEGAN,
    ),
    *(
        _lives_in(
            r"be: (?:back )?in (?:an? (?:[\w-]+ ){0,2}(?:flat|house|apartment|place|room) in )?"
            rf"{_TOWN}(?=\Z|,)",
            confidence=0.7,
            **when,
        )
        for when in ({"kin": True}, {"since": True, "or_now": True, "past": False})
    ),
    _lives_in(
        r"be live: (?P<o>in an? (?:care|nursing|retirement) home(?: (?:in|near) [A-Z][\w-]+)?)\b",
        "live {o}",
        past=False,
    ),
    _lives_in(
        r"be: (?P<o>on the (?:ground|top|upper|lower|bottom|first|second|third|fourth|fifth|sixth"
        r"|seventh|eighth|ninth|tenth|eleventh|twelfth|\w+(?:teen|tie)th|\d+(?:st|nd|rd|th))"
        r" floor)\b",
        "live {o}",
        aspect="home",
        past=False,
    ),
    *(
        _lives_in(
            rf"{verbs}: "
            r"(?:an?|the|our|my) (?:[\w-]+ ){0,3}(?:flat|apartment|studio|bedsit|basement|room) in"
            r" (?P<o>[A-Z].+)",
            mode=mode,
            confidence=0.7,
        )
        for verbs, mode in (("take rent find get", Mode.BEGAN), ("rent", Mode.STATE))
    ),
    _lives_in(
        r"settle: (?:(?:down )?(?:to|in)|(?:in|into|in to) (?:the|my|our) new (?:place|flat|house"
        r"|home|apartment) in) (?P<o>[A-Z].+)",
        mode=Mode.BEGAN,
    ),
    *(
        _from(
            r"be: (?:(?:originally|born|born and raised|raised)(?: and \w+)? )?(?:from|born in"
            r"|raised in|born and raised in) (?P<o>(?:an? [\w\s]+? )?[a-z ]*[A-Z].*)",
            mode=mode,
            past=mode is Mode.BEGAN,
        )
        for mode in (Mode.STATE, Mode.BEGAN)
    ),
    _from(r"come: (?:originally )?from (?P<o>[A-Z].*)"),
    _from(r"grow: up (?:in|on) (?P<o>.+)", "grow up in {o}", mode=Mode.EVENT),
    row(
        rf"be: (?:(?:originally|half|officially|part) )?(?:an? )?(?P<o>{NATION})(?: citizen"
        rf"| national)?(?=\Z|,| by | and | but )",
        "nationality",
        "be {o}",
        confidence=0.85,
    ),
    _owns(rf"own have: {_OWNED}"),
    _owns(r"have: (?P<o>(?:an? )?season tickets?\b.*|tickets (?:for|to) (?:the |an? )?[A-Z].+)"),
    _owns(r"own: (?P<o>(?:an?|two|three|\d+|several) .+)"),
    row(rf"drive: {_MAKES}(?=\Z|,| and | but )", "drives", "drive {o}", confidence=0.85),
    _owns(rf"buy purchase get: {_OWNED}", mode=Mode.BEGAN),
    _owns(
        r"buy purchase: (?P<o>(?:an? (?:[a-z-]+ ){0,3}(?-i:[A-Z][\w-]*[a-z]\w*)(?: (?-i:[A-Z])"
        r"[\w-]*)*|an? (?:[a-z-]+ )?(?:launch|boat|caravan|tractor|trailer|engine|press|loom|kiln"
        r"|lathe|synth|accordion|trombone|trumpet|cello|harp|house|plot|unit|shed)))(?=\Z|[,.;:]"
        r"| for )",
        mode=Mode.BEGAN,
    ),
    _owns(r"sell: (?P<o>(?:my|our|the) .+)", mode=Mode.ENDED),
    row(r"need: (?P<o>a wheelchair)\Z", "uses", "use {o}"),
    row(
        r"commute: (?P<o>(?:by (?:e-?)?(?:bike|bicycle|car|train|bus|tram|foot|tube|metro|subway"
        r"|ferry|scooter|motorbike)|(?:to|from|between) .+)\b.*)",
        "does",
        "commute {o}",
        past=False,
    ),
)

HOME = table_of(_HOME_ROWS)

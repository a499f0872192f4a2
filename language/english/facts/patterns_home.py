"""Where people live and come from, whom they live with, what they own."""

from __future__ import annotations

import re

from language.english import lexicon
from language.english.facts.rules import Mode, Options, bare, row, rows_of, table_of
from language.english.facts.vocabulary import MONTH, NATION, WEEKDAY, is_product

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
_THINGS = (
    r"(?:car|bike|bicycle|e-bike|motorbike|motorcycle|scooter|van|truck|boat|house|flat|apartment"
    r"|cabin|cottage|houseboat|farm|piano|guitar|violin|cello|camera|telescope|greenhouse"
    r"|allotment|garden"
    r"|vineyard|restaurant|shop|store|bakery|(?:cafe|café)|business|company|laptop|tesla|car wash"
    r"|launderette|barber shop|camper|caravan|sailboat|yacht|drone|kayak|estate|suv|pickup"
    r"|3d printer|macbook|iphone|pixel|kindle|playstation|xbox|vespa|sewing machine|drum kit"
    r"|record player|vinyl collection|electric car|hybrid|wheelchair|hives|kiln|solar panel|sauna"
    r"|dishwasher|tumble dryer|heat pump|canoe|loom|lathe|typewriter|treadmill|hot tub)"
)
_OWNED = (
    rf"(?P<o>(?:an?|the|two|three|four|\d+|around \d+|my own|our own|our first|my first"
    rf"|some)(?: (?!(?:at|in|with|for|of|to|and|on)\b)[\w'-]+){{0,4}}? ?\b(?:{_THINGS})s?(?: "
    rf"(?:called|named) [A-Z]\w+)?)\b(?! (?:accident|crash|insurance|loan|problem|idea|key|plan"
    rf"|wash|park|dealer|boot|seat|alarm|account|that needs|issue|server|object|class))"
)
_MAKES = (
    r"(?!.* for a living)(?P<o>(?:an? |the |my )?(?:[\w-]+ ){0,3}(?:tesla|volvo|toyota|honda|ford"
    r"|bmw|audi|vw|volkswagen|fiat|skoda|seat|renault|peugeot|citro[eë]n|mazda|nissan|hyundai|kia"
    r"|subaru|jeep|mini|opel|dacia|mercedes|porsche|prius|civic|golf|corolla|polo|passat|beetle"
    r"|lexus|chevrolet|van|truck|car|motorbike|motorcycle|pickup|suv|estate|tram|bus|taxi|lorry"
    r"|moped|scooter|hybrid|saab|alfa|suzuki|mitsubishi|trabant|fiesta|focus|yaris|octavia|clio"
    r"|micra|panda|leaf|twingo|kangoo|berlingo|astra|corsa|jaguar|chrysler|smart|rover|cupra|byd"
    r"|polestar|rivian|lada)(?: [\w-]+){0,3})"
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
_TOOLS = "|".join(map(re.escape, sorted(lexicon.words("software") | lexicon.words("products"))))
_TOOL = rf"(?!java\b)(?:{_TOOLS})"  # Java is an island, too.
_TOWN = r"(?P<o>[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
_LIVES: Options = {"kind": "place", "accepts": _is_place, "object": "{place}", "to_comma": False}
_ORIGIN: Options = {"kind": "place", "object": "{place}", "accepts": _names_a_place}
_lives_in = rows_of("lives_in", "live in {o}", **_LIVES)
_lives_with = rows_of("lives_with", "live with {o}")
_from = rows_of("from", "be from {o}", **_ORIGIN)
_owns = rows_of("owns", "own {o}")
_ROWS = (
    _lives_in(rf"live reside: {_IN}"),
    _lives_in(r"live: on the [\w ]{3,30}? in (?P<o>[A-Z].+)"),
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
    _lives_with(r"live: (?P<o>alone|by myself|on my own)", "live alone", object="nobody"),
    _lives_in(rf"be: (?:based|living|located|settled|residing) {_IN}"),
    _lives_in(
        r"move relocate emigrate immigrate: (?:back |over |down |up |out |away )?(?:here )?"
        rf"(?:from (?!(?:{_TOOLS})\b)[A-Z][\w]+ )?(?:to|into) (?!{_TOOL}\b)(?P<o>.+)",
        mode=Mode.BEGAN,
    ),
    *(
        _lives_in(rf"be: (?:back )?in {_TOWN}\Z", confidence=0.7, **when)
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

HOME = table_of(_ROWS)

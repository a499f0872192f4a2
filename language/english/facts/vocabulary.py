"""Words and patterns for trades, nations, languages, diets, products, figures and dates."""

from __future__ import annotations

import re

from language.english.lexicon import words

NUMBER_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?|a hundred)"
)
MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
WEEKDAY = r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"
DAY = (
    rf"(?:\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b(?:,? \d{{4}})?"
    rf"|\b{MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    r"|\b(?:the )?\d{1,2}(?:st|nd|rd|th)\b)"
)
UNIT = (
    r"(?:mg|mcg|µg|g|kg|kilos?|grams?|lbs?|pounds?|stone|ml|l|litres?|liters?|cups?|units?|iu"
    r"|cm|mm|m|metres?|meters?|km|k|kilomet(?:re|er)s?|miles?|feet|ft|euros?|eur|dollars?|usd"
    r"|quid|pence|francs?|chf|gbp|percent|%|hours?|hrs?|h|minutes?|mins?|days?|weeks?|months?"
    r"|years?(?: old)?|people|°c|degrees|am|pm|o'clock|square met(?:re|er)s|m²|sqm|m2)"
)
_OFTEN = r"(?:(?:once|twice|thrice|\w+ times) (?:a|per|every) (?:day|week|month|year)|daily)"
_NUMERAL = r"[€$£]?(?<![\w.])\d+(?:[.,:']\d+)*(?:k\b)?(?: ?€)?"
FIGURE = rf"(?:{DAY}|\b{_OFTEN}|{_NUMERAL}(?: ?{UNIT}\b)?|\b{NUMBER_WORD}\b(?: {UNIT}\b)?)"


_NOT_TRADES = frozenset(
    "beginner lover fan reader user member mother father sister brother person believer"
    " newcomer owner fan"
                        .split())  # fmt: skip
_STATES = frozenset(
    "student apprentice intern undergraduate postgraduate trainee freelancer".split()
)
_ROLE_END = re.compile(
    r"(?is)\s+(?:at|for|in|of|from|with|who|by|on|near|based|specialising|specializing|working"
    r"|there|here|now|who|after|not|too|during|since|until|and|studying|living|where|that|to|within"
    r"|over|through|looking|trying|currently|but|focus|via|as)\b.*|[,;(:.].*"
)

# What somebody is by belief, descent, or whom they love; written with a capital, and no name.
IDENTITIES = (
    r"(?:christian|catholic|muslim|jewish|buddhist|hindu|sikh|jain|shia|sunni|protestant|anglican"
    r"|orthodox|lutheran|baptist|methodist|evangelical|quaker|mormon|pagan|atheist|agnostic"
    r"|asian|latin[oa]|hispanic|kurdish|romani|arab|gay|lesbian|bisexual|bi|queer|transgender|trans"
    r"|non-?binary|asexual|pansexual|colourblind|colorblind)"
)
NATION = f"(?:{'|'.join(sorted(words('nations'), reverse=True))})"
LANGUAGE = f"(?:{'|'.join(sorted(words('languages'), reverse=True))})"

DIET = (
    r"(?:(?:strict |mostly |fully |lifelong |lacto[- ]?ovo[- ]?|ovo[- ]?"
    r"|lacto[- ]?)?(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|fruitarian"
    r"|carnivore)|plant[- ]based|keto|paleo|kosher|halal|(?:gluten|dairy|lactose|sugar)[- ]free"
    r"|low[- ](?:carb|fodmap)|raw food|mediterranean|teetotal)"
)


_OFFICE = re.compile(
    r"(?i)(?:head|vp|vice president|director) of (?!(?:the|an?|my)\b)[a-z]+(?: (?!in|at"
    r"|for)[a-z]+)?\b"
)


def role_in(said: str) -> str | None:
    """The trade at the beginning of `said`: "senior engineer" of "senior engineer at Acme"."""
    office = _OFFICE.match(said)
    if office is not None:
        return office[0]
    role = _ROLE_END.sub("", said).strip()
    parts = role.split()
    if not 1 <= len(parts) <= 6 or not {"a", "an", "just", "only"}.isdisjoint(parts[1:]):
        return None
    head = parts[-1].lower().strip("'")
    head = head.removesuffix("s") if head not in words("trades") else head
    if head in _NOT_TRADES or (
        head not in words("trades")
        and not head.endswith(("ologist", "keeper", "smith", "wright", "monger", "ician", "warden"))
        and not (head.endswith(("sman", "swoman", "fireman", "foreman", "chairman")))
    ):
        return None
    return role


def is_learner(role: str) -> bool:
    return role.lower().split()[-1] in _STATES


def is_product(said: str) -> bool:
    """Whether it begins with the name of one: one that is known, or written as no word is."""
    name = said.removeprefix("the ").split()[0].removesuffix("'s")
    inner = any(sign.isupper() or sign.isdigit() or sign in "+#" for sign in name[1:])
    # Other tools are words at the beginning of a sentence: "Spring is lovely".
    return inner or (name[:1].isupper() and name.lower() in words("products"))

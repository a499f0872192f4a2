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


# Something that one likes, takes or has; not what stands for a whole sentence, nor an amount.
_TASTE = (
    r"(?!(?:it|this|that|these|those|he|she|they|there|what|which|who|here|you|your|i|we|my|one"
    r"|nothing|everything|not|never|the|an?) )(?P<x>[\w'-]+(?: [\w'-]+){0,3}?)"
)
_DRINKS = r"coffee|caffeine|tea|booze|alcohol|beer|wine|cola|soda|energy drinks|fizzy drinks"
_FOODS = (
    r"sugar|sweets|chocolate|meat|red meat|dairy|gluten|bread|carbs|crisps|cheese|wheat|pork|fish"
    r"|junk food|fast food|takeaways|lactose|processed food"
)
# "Off wine tasting on Saturday" is off to it.
_NOW = (
    r"(?=\Z|\s*[,;.!()–—]| (?:since|for|now|these|until|till|again|at the moment|completely"
    r"|altogether|entirely|this|because|and|but|so|as|too|after|right now|lately)\b)"
)
_RANK = (
    r"(?:(?:the|an?|their) )?(?:\w+ )?(?:lead|manager|head|director|partner|supervisor|captain"
    r"|principal|deputy|editor|buyer|foreman|sergeant|chef)"
)
_JOINTS = r"back|knees?|hips?|shoulders?|necks?|ankles?|wrists?|elbows?|hearing|eyesight"
_NO_PERSON = r"(?:morning|night|people|\w+(?:y|ed|ing|al|ous|ive|ful|ent|ant|ic|able|less)"

# What is said by other words, as the rules know it. Each with a part that is looked for first.
PARAPHRASES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (part, re.compile(pattern), full)
    for part, pattern, full in (
        ("other half", r"\b([Mm]y|[Oo]ur) (?:other|better) half\b(?! of)", r"\1 partner"),
        (
            " kids ",
            r"\A(?:[Bb]oth )?(?:[Tt]he|[Aa]ll the) kids "
            r"(?=(?:are|have|love|hate|go|start|started|want|do not|need) (?!in\b|of\b))",
            "our kids ",
        ),
        ("pped sticks", r"\bupped sticks\b", "moved"),
        ("hung up ", r"\bhung up (?:his|her|my|their) (?:boots|apron|hat|tools)\b", "retired"),
        ("on staff", r"\b(?:am|is) (?:now )?on staff at\b", "work at"),
        ("made me", rf"\bmade me (?={_RANK}\b)", "promoted me to "),
        ("prescribed", r"\b(?:have been|was|got|am|am being) prescribed\b", "take"),
        ("iagnosed", r"\A(?:just |finally )?(?:got )?[Dd]iagnosed with\b", "I was diagnosed with"),
        (
            "y ",
            rf"(?i)\A(my )((?:left |right |lower )?(?:{_JOINTS})) (?:is|are)"
            r" (?:shot|bad|dodgy|knackered|wrecked|gone|messed up|no good)\b(?=,|\Z| (?:again|now"
            r"|so|and)\b)",
            r"I have a bad \2",
        ),
        (
            "up ",
            r"\b(?:am|are) (?:always |usually )?up (?=(?:at|by|before|from) (?:\d|five|six|seven"
            r"|eight|nine|half|dawn|sunrise))",
            "get up ",
        ),
        (
            "ff ",
            rf"\A(?:[Bb]een |[Nn]ow )?[Oo]ff (?=(?:the )?(?:{_DRINKS}|{_FOODS}|cigarettes|cigs"
            rf"|fags)\b(?! (?:list|menu|season|licen[cs]e)))",
            "I am off ",
        ),
        (
            "off ",
            r"\b(?:am|have been|been) (?:completely |totally |now )?off (?:the )?"
            rf"({_DRINKS}){_NOW}",
            r"do not drink \1",
        ),
        (
            "off ",
            rf"\b(?:am|have been|been) (?:completely |totally |now )?off (?:the )?({_FOODS}){_NOW}",
            r"do not eat \1",
        ),
        (
            "off ",
            r"\b(?:am|have been|been) (?:completely |totally |now )?off (?:the )?(?:cigarettes"
            rf"|cigs|fags|smokes|nicotine){_NOW}",
            "do not smoke",
        ),
        (
            " person",
            rf"(?i)\A(?:I am )?not (?:really |exactly |much of )?an? (?!{_NO_PERSON}|good|bad|nice"
            rf"|shy"
            rf"|big|calm|warm|mean) ){_TASTE} person\b",
            r"I do not like \g<x>",
        ),
        (
            "t ",
            r"\A(?:I am )?(?i:not) (?:(?:really |exactly )?(?:big|keen) on|(?:really )?(?:fond of"
            r"|one for)|much of an? (?=\w+ (?:drinker|eater)\b)) ?(?!(?:the|this|that|it|how)\b)",
            "I do not like ",
        ),
        ("er", r"\A(I do not like \w+) (?:drinker|eater)\b", r"\1"),
        (
            "never ",
            r"\b(?:was|were|have) never (?:really |much )?(?:been )?(?:one for|much of a fan of"
            r"|a fan of|into|keen on|big on)\b",
            "do not like",
        ),
        (
            " not ",
            rf"(?i)\A{_TASTE} (?:is|are) (?:just |really |simply )?not (?:really |exactly |quite )?"
            r"(?:for me|my (?:thing|cup of tea|bag|jam|scene))\b(?: .*)?\Z",
            r"I do not like \g<x>",
        ),
        (
            " my ",
            rf"(?i)\A{_TASTE} (?:is|are) (?:so |totally |very much |really )?my (?:thing|jam"
            rf"|cup of tea|happy place|guilty pleasure|new obsession)\b(?: .*)?\Z",
            r"I like \g<x>",
        ),
        (
            " to me",
            rf"(?i)\A{_TASTE} tastes? (?:like \w+|awful|horrible|disgusting|vile) to me\b.*",
            r"I do not like \g<x>",
        ),
        (
            " for ",
            r"\b(?:have|have got|had) (?:always had )?a (?:real |huge |big |bit of a )?(?:soft spot"
            r"|weakness) for\b",
            "like",
        ),
        (
            " over ",
            rf"(?i)\A(?:give me )?{_TASTE} (?P<o>over [\w -]+?),? (?:any day|every time)\b.*",
            r"I prefer \g<x> \g<o>",
        ),
        ("would ", r"\bwould (?:take|pick|choose) (?=[\w -]+ over )", "prefer "),
        ("warm", r"\bhave warmed (?:up )?to\b", "like"),
        (
            " to ",
            r"\bhave (?:come|grown|learned|learnt) to (?=(?:like|love|enjoy|appreciate)\b)",
            "",
        ),
    )
)

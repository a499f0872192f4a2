"""Words and patterns for trades, nations, languages, diets, products, figures, dates and names."""

from __future__ import annotations

import re
from functools import lru_cache

from language.english import words
from language.english.facts.verbs import PAST, THIRD

# What ails somebody is over then, and what they take for it; a car that is fine again is there.
IS_WELL = (
    r"(?:is|are|has|have) (?:finally |now |all |fully |completely )*(?:healed|cured|cleared up"
    r"|(?:fine|ok|okay|well) again)(?= ?(?:\Z|[,;:.!]|now\b))"
)
# Migraines that are gone are over; tablets that are gone are to be bought.
IS_GONE = r"(?:is|are) (?:finally |now |all )*gone(?= ?(?:\Z|[,;:.!]|now\b))"
# "You can mention it again": ends an instruction not to do it.
ALLOWS = (
    r"you (?:can|may) (?:now )?(?:mention|use|say|ask|write|include|add|give|bring up|talk about"
    r"|speak|answer|reply|call|suggest|show)"
)
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
        (" and ", r"\b(?:[Mm]y )?(?:[Mm][uo]m and [Dd]ad|[Dd]ad and [Mm][uo]m)\b", "my parents"),
        (
            "ed ",
            r"\A(?:[Tt]he|[Mm]y|[Oo]ur) ([\w ]{3,30}?) (?:is|was|got|has been|had to be) (?:now )?"
            r"(moved|postponed|rescheduled|shifted|pushed) (?=(?:back |forward )?to\b)",
            r"they \2 the \1 ",
        ),
        (
            "free",
            r"\b(?:am|have been|been) (?:now |finally )?(?:smoke|nicotine)[- ]free\b",
            "no longer smoke",
        ),
        (
            "back ",
            r"\b(?:am|are|went|gone) back (?:at|to) work(?=\Z|[,;]| (?:now|since|after|from|on)\b)",
            "am back from leave",
        ),
        (
            "a new ",
            r"\A(?:I|[Ww]e) (?:have |got )+a new (boss|manager|landlord|landlady|supervisor|doctor"
            r"|GP"
            r"|flatmate|dentist|therapist|coach|trainer),? (?:called |named )?(?=[A-Z])",
            r"my \1 is ",
        ),
        (
            "moved in",
            r"\A((?:[Mm]y|[Oo]ur) [\w-]+(?: [A-Z]\w+)?|[A-Z]\w+) (?:has "
            r"|have )?(?:just )?moved in with "
            r"(?:me|us)\b",
            r"I moved in with \1",
        ),
        (
            "call",
            r"\A(?:I|[Ww]e) (?:call|named|called) (our|my) ([a-z]+) (?=[A-Z]\w+\Z)",
            r"\1 \2 is called ",
        ),
        ("other half", r"\b([Mm]y|[Oo]ur) (?:other|better) half\b(?! of)", r"\1 partner"),
        (
            " kids ",
            r"\A(?:[Bb]oth )?(?:[Tt]he|[Aa]ll the) kids "
            r"(?=(?:are|have|love|hate|go|start|started|want|do not|need) (?!in\b|of\b))",
            "our kids ",
        ),
        (" user", r"\A((?:\w[\w.+#]* ){0,2}\w[\w.+#]*) user(?: here)?(?=,|\Z)", r"I use \1"),
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

NAME = (
    r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’\-]*[\w](?:\s(?:(?:de|van|von|da|del|der|la"
    r"|O')\s)?[A-ZÀ-ÖØ-Þ][\w'’\-]+){0,2}"
)
ONE_NAME = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w\-]*\w"
# Words that begin with a capital and are no names.
NOT_NAMES = frozenset(
    """I I'm The This That It He She We They You And But So In On At If When My Our Your His Her
    Also January February March April May June July August September October November
    December Monday Tuesday Wednesday Thursday Friday Saturday Sunday Christmas Easter
    English Spanish French German Thanks Hi Hey Hello Ok Okay Yes No Well Oh Just Really
    Today Tomorrow Yesterday God Lord Mom Dad Mum PhD MBA CEO CTO ADHD USA UK US EU Please
    Also Sure Sorry Not Who What Which Where Why How American British Indian Chinese
    Japanese Italian Dreamt Dreamed Had Got Been Measured Threw Swapped Sold Quit
    Moved Left Lost Gave Stopped Started Mr Mrs Ms Dr Born North South East West
    Level Tier Team Type Gen Stage Grade Rank Class Year Group""".split()
)
# A title makes a name of a word that many people write in small letters.
TITLED = re.compile(
    r"(?i)\b(?P<title>mr|mrs|miss|ms|dr|aunty|auntie|uncle|nan|nana|grandad)\.? "
    r"(?P<name>[^\W\d_][\w'-]+[^\W_])(?!')"
)

# A sentence with another capital than "I" is by somebody who writes capitals.
_CAPITAL = re.compile(r"[A-HJ-ZÀ-ÖØ-ÞĀ-Ž]|I(?=\w)")
_SMALL = re.compile(
    r"(?<![\w'’@./#_-])(?:(?P<to>in|to|from|near|outside|at|joined|left|for|on|with|using"
    r"|use) (?:an? )?)?"
    r"(?P<name>[a-z][\w-]+)(?![\w'’@/#_-]|\.\w)(?P<user>(?= user\b))?"
)
# "Miso passed away", by somebody who writes no capitals.
_NAME_GONE = re.compile(
    r"[a-z]{3,12}(?= (?:died|passed away|ran away|moved out|broke up with me)\b)"
)
_TOWNS, _TOOLS = ("cities", "places"), ("products", "software", "tools")
_CHANGED = re.compile(r"\b(?:switch|mov|migrat|chang|upgrad)\w*(?: [\w-]+){0,2} \Z")
# Whose name is meant after these words, by the lists that have it.
_NAMED_AFTER = {"to": _TOWNS, "at": ("organisations",), "user": _TOOLS}
_NAMED_AFTER |= dict.fromkeys(("in", "from", "near", "outside"), _TOWNS)
_NAMED_AFTER |= dict.fromkeys(("joined", "left", "for"), ("organisations",))
_NAMED_AFTER |= dict.fromkeys(("on", "with", "using", "use"), _TOOLS)
# Lists of words of which none is a name, unless it is in a list of names too.
_COMMON = ("function", "adverbs", "verbs", "verbs_or_nouns", "bland", "empty", "not_names")


def may_be_name(said: str) -> bool:
    """Whether words at the beginning of a clause, where any word has a capital, may be a name."""
    first = re.split(r"[\s'’]", said)[0]
    plain = first.lower()
    if first in NOT_NAMES or said.endswith(("'s", "’s")):
        return False
    if plain in words("first_names") or plain in words("also_words"):
        return True
    return (
        plain not in THIRD
        and plain not in PAST
        and not any(plain in words(kind) for kind in _COMMON)
    )


def is_first_name(said: str) -> bool:
    return said.lower() in words("first_names")


def with_capitals(sentence: str) -> str:
    """Of the same length: "im at aldi in leeds" with its names as others write them.

    Only in a sentence without capitals, and only names that a list has.
    """
    if _CAPITAL.search(sentence, 1) is not None:
        return sentence
    begun = _NAME_GONE.match(sentence)
    if begun is not None and _is_rare(begun[0]):
        sentence = sentence[0].upper() + sentence[1:]
    return _SMALL.sub(_with_capital, sentence)


def _with_capital(found: re.Match[str]) -> str:
    name, to = found["name"], found["to"]
    lists = _NAMED_AFTER.get(to or ("" if found["user"] is None else "user"), ())
    if to == "to" and _CHANGED.search(found.string, 0, found.start()):
        lists = (*lists, *_TOOLS)
    if not (_is_name_alone(name) or (_is_rare(name) and any(name in words(one) for one in lists))):
        return found[0]
    return found[0][: -len(name)] + name.capitalize()


@lru_cache(maxsize=4096)
def _is_name_alone(word: str) -> bool:
    return word in words("first_names") and _is_rare(word)


@lru_cache(maxsize=4096)
def _is_rare(word: str) -> bool:
    """Whether it is in no list of plain words."""
    plain = (
        word in words("also_things") or word in words("also_words") or word in THIRD or word in PAST
    )
    return not plain and not any(word in words(kind) for kind in (*_COMMON, "things", "venues"))


def small_name(said: str) -> str:
    """ "ana" as "Ana"; empty where it is no first name, or a word as well: "may", "rich"."""
    also = said in words("also_words") or any(said in words(kind) for kind in _COMMON)
    return said.capitalize() if said.islower() and is_first_name(said) and not also else ""


def titled_name(found: re.Match[str]) -> str | None:
    """ "mrs colquhoun" as "Mrs Colquhoun"; None where a title is no title: "miss him"."""
    name = found["name"]
    if not may_be_name(name.capitalize()) or name.lower() in words("function"):
        return None
    return f"{found['title'].capitalize()} {name[:1].upper()}{name[1:]}"

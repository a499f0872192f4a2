"""Names, ages, birthdays, measures, and being with somebody."""

from __future__ import annotations

import re

from language.english.facts.personal_names import NOT_NAMES, is_first_name, may_be_name, small_name
from language.english.facts.rules import Mode, Options, bare, row, rows_of, table_of
from language.english.facts.vocabulary import DIET, IDENTITIES, NATION, NUMBER_WORD, role_in

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
        rf"| years? of age| years young| yo\b| y/o)?(?=\Z|,| (?:and|but|so|from (?!the|an?\b)) ?)",
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
        r"be: (?P<o>\d[\d.,]* ?(?:m|cm|metres|meters|feet|ft|foot)\b(?: ?\d+)?"
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
        r"be: (?:an? |my )?(?:best |good |close |old )?friends? (?:with|of) (?P<o>[A-Z]\w+)",
        "friend_of",
        "be friends with {o}",
        kind="person",
    ),
    _is_a(r"be: (?P<o>an only child)\b"),
    _is_a(
        r"be: an? (?P<o>(?:three-legged |rescue |black |white |golden |tabby |grey |young |old "
        r"|big |small )*(?:labrador|poodle|retriever|beagle|corgi|dachshund|collie|spaniel|terrier"
        r"|lurcher|greyhound|whippet|husky|mutt|mongrel|pug|bulldog|german shepherd|border collie"
        r"|golden retriever|golden|labradoodle|cockapoo|siamese|maine coon|persian|tabby|ragdoll"
        r"|bengal|rottweiler|chihuahua|boxer|dalmatian|mix|shepherd|setter|pointer|mastiff|samoyed"
        r"|akita|shiba inu|haflinger|shetland pony|friesian|arabian|icelandic|thoroughbred"
        r"|british shorthair|schnauzer|great dane|vizsla|weimaraner)(?: mix)?)\b",
        "be a {o}",
        animals=True,
    ),
)

IDENTITY = table_of(_ROWS)

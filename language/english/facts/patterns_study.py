"""Study and leave, languages, skills and tools."""

from __future__ import annotations

import re

from language import english
from language.english.facts.rules import Mode, bare, row, rows_of, table_of
from language.english.facts.vocabulary import LANGUAGE, NUMBER_WORD, is_product
from language.facts import STUDIES

_NO_SKILLS = tuple(
    (
        "more/how/the growth/the effect/the impact/the role/the relationship/whether/a lot/about/"
        "new things/so much/that/to be/from/the basics of/"
        "the hard way/the docs/the code/the question"
    ).split("/")
)


def _is_skill(words: str) -> bool:
    return not words.lower().startswith(_NO_SKILLS)


def _names(words: str) -> bool:
    if re.search(r"\b(?:School|Academy|College|University|Primary)\b", words):
        return False
    return (
        words[:1].isupper()
        or any(sign.isdigit() for sign in words)
        or any(part[:1].isupper() for part in words.split())
    )


def _is_tool(words: str) -> bool:
    """What has a name or a version; not an amount of something, nor a coupon."""
    return _names(words) and re.match(r"(?:about |an? )?\d|the ", words) is None


def _is_thing(words: str) -> bool:
    return is_product(bare(words))


def _is_language(words: str) -> bool:
    head = re.sub(r"\A(?:(?:fluent|some|a little|a bit of|only) )*", "", words.lower())
    return any(head.startswith(language) for language in english.words("languages"))


# What people move from one program to another: "all my notes", "my phone contract".
_CODE = r"(?:code|apps?|project|repo|tests?|branch|services?|server|database|config|build|state)\b"
_MY_THINGS = (
    rf"(?:everything|it all|CI|email|hosting|(?:all )?(?:my|our) (?!{_CODE}|\w+ and )"
    r"[a-z][\w -]{2,24}?)(?: over)?"
)
_studies_at = rows_of("studies_at", "study {o} at {org}", kind="organisation")
_studies = rows_of("studies", "study {o}")
_graduated_from = rows_of("graduated_from", "graduate from {o}")
_speaks = rows_of("speaks", "speak {o}", many=True, accepts=_is_language)
_learns = rows_of("learns", "learn {o}")
_uses = rows_of("uses", "use {o}")
_ROWS = (
    _studies_at(
        r"study: (?P<o>.+?) (?:at|in) (?P<org>[A-Z].+)\Z", object="{org}", accepts=_is_skill
    ),
    _studies_at(r"study: (?:part-time |full-time |online )?at (?P<o>.+)\Z", "study at {o}"),
    _studies(
        r"study: (?!(?:part[- ]time|full[- ]time|online|for|at|in|hard|a lot|with|how|more|all"
        r"|late)\b)(?P<o>.+?)(?: (?:at|in) (?:the |an? )?[A-Za-z].+)?\Z",
        accepts=_is_skill,
    ),
    *(
        _studies_at(
            rf"{verbs} (?P<o>(?:[A-Z][\w'.]+ )+(?:(?<=\bSt )[A-Z]\w+|Primary|Elementary|Middle"
            rf"|High|Grammar|School"
            rf"|Academy|College|University|Nursery|Kindergarten|Montessori)(?: School)?)\b.*",
            "study at {o}",
            kind="organisation",
            mode=mode,
            past=mode is Mode.BEGAN,
        )
        for verbs, mode in (
            ("start go be: (?:to|at|in)", Mode.STATE),
            ("switch change transfer move: (?:schools )?(?:over )?to", Mode.BEGAN),
        )
    ),
    _studies_at(
        r"start begin: (?:at )?(?P<o>kindergarten|nursery|preschool|(?:primary |secondary |middle "
        r"|high |elementary )?school|sixth form|college|university|uni|daycare)(?=\Z|,| (?:and|at"
        r"|in|this|last)\b)",
        "go to {o}",
        mode=Mode.BEGAN,
        object="{o}",
    ),
    row(
        rf"be: (?:now )?(?P<o>in (?:(?:year|grade) (?:\d+|{NUMBER_WORD})|(?:first|second|third"
        rf"|fourth|fifth"
        r"|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth) grade|primary school|high school"
        r"|middle school|secondary school|sixth form|kindergarten|preschool))\b",
        "school_year",
        "be {o}",
        past=False,
    ),
    _studies_at(
        r"transfer switch: to (?P<o>(?-i:[A-ZÉ]{2,})|[\w ]+ (?:University|College)|Uni\w* [\w ]+)"
        r"(?=\Z|,)",
        "study at {o}",
        mode=Mode.BEGAN,
        kind="organisation",
    ),
    row(
        r"be: on (?P<o>Instagram|Facebook|TikTok|WhatsApp|Twitter|LinkedIn|Snapchat|Reddit|Mastodon"
        r"|Bluesky|social media)\b",
        "uses",
        "be on {o}",
        past=False,
    ),
    _studies(r"major: in (?P<o>.+)"),
    _studies(
        r"be: in (?:my|his|her) (?:first|second|third|fourth|fifth|sixth|final|last) year of"
        r" (?P<o>(?:[\w-]+ school|law|medicine|nursing|uni|university|college|dentistry|physics"
        r"|chemistry|biology|history|maths|engineering|architecture|economics|psychology)"
        r"(?: at [A-Z]\w+)?)(?=\Z|,| and )",
        "study at {o}",
        past=False,
    ),
    _studies(r"train retrain: (?:as|to (?:be|become)) (?P<o>an? .+)", "train as {o}", past=False),
    _studies(
        r"do: (?P<o>(?:an?|my) (?:(?:part|full)-time |distance )?(?:(?!lot|good|bad"
        r"|great)[\w-]+ (?=degree))?"
        r"(?:phd|doctorate|master'?s?(?: degree)?|mba|bachelor'?s?(?: degree)?"
        r"|degree|apprenticeship|course)(?: (?:in|on|as) .+?)?)(?: at (?P<org>.+))?\Z",
        "do {o}",
    ),
    _studies(
        r"start begin: (?P<o>(?:an?|my) (?:phd|doctorate|master'?s?|mba|bachelor'?s?|degree"
        r"|apprenticeship)(?: degree)?(?: (?:in|on|as) .+?)?)(?: (?:at|with) (?P<org>.+))?\Z",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    *(
        row(rf"{verbs}: {tail}", predicate, "study", mode=Mode.ENDED, object=STUDIES)
        for predicate in ("studies", "studies_at")
        for verbs, tail in (
            ("graduate", r"(?:(?:today|yesterday|last \w+|this \w+|at last|now) ?)?(?P<o>)\Z"),
            (
                "finish complete",
                r"(?:my|the) (?:degree|studies|phd|doctorate|master'?s?|bachelor'?s?|mba"
                r"|apprenticeship)\b(?! in \d)(?P<o>)",
            ),
        )
    ),
    _graduated_from(r"graduate: from (?P<o>.+)", mode=Mode.EVENT, kind="organisation"),
    _graduated_from(r"graduate: with (?P<o>an? .+)", "graduate with {o}", mode=Mode.EVENT),
    _graduated_from(
        r"have: (?P<o>an? (?:phd|doctorate|master'?s?|mba|bachelor'?s?|degree"
        r"|diploma)(?: degree)? (?:in|from) .+)",
        "have {o}",
    ),
    _speaks(
        r"speak: (?:fluent |some |a little |a bit of |basic |conversational |native "
        r"|good |only )?(?P<o>.+)"
    ),
    _speaks(r"be: (?:fluent|bilingual) in (?P<o>.+)"),
    _speaks(r"grow: up (?:speaking|with) (?P<o>[A-Z]\w+(?:(?:,| and) [A-Z]\w+)*)", mode=Mode.BEGAN),
    _learns(rf"do: (?P<o>{LANGUAGE})\b.*", past=False),
    _studies(
        r"study: for (?P<o>(?:my|the|an?) (?:[\w-]+ ){0,2}(?:exams?|test|certificate|diploma"
        r"|bar))\b",
        "study for {o}",
        past=False,
    ),
    _learns(rf"learn study: (?P<o>(?:{LANGUAGE})(?:,? (?:and )?{LANGUAGE})*)\b.*", many=True),
    _learns(r"learn: (?:how )?to (?P<o>.+)", "learn to {o}", accepts=_is_skill, past=False),
    _learns(r"learn: (?!how|to )(?P<o>.+)", accepts=_is_skill, past=False),
    _learns(r"take: (?P<o>(?:[\w-]+ ){1,3}(?:lessons|classes))\b.*", "take {o}", past=False),
    row(
        r"know: (?P<o>(?:[A-Z][\w+#.]*(?: and )?)+) (?:well|inside out|pretty well"
        r"|quite well|well enough|a bit)",
        "knows",
        "know {o}",
        many=True,
    ),
    _uses(
        r"use: (?P<o>.+?)(?: (?:for|to|on|at|as|every|daily|instead|in|with)\b.*)?\Z",
        accepts=_is_tool,
        many=True,
        past=False,
        confidence=0.7,
    ),
    _uses(
        r"shoot write record draw knit ride fish: (?:with|on) (?P<o>(?:an? "
        r"|my )?[A-Z].+?)(?: and (?:mostly|mainly) .*)?\Z",
        accepts=_is_tool,
        past=False,
    ),
    row(r"ride: (?P<o>an? (?:[\w-]+ )?[A-Z].+?)(?: (?:to|for|every)\b.*)?\Z", "owns", "ride {o}"),
    _uses(
        r"have: (?:an? )?(?P<o>[A-Z]\w+(?:(?:,| and) (?:an? )?[A-Z]\w+)*) (?:subscription"
        r"|membership)s?\b",
        many=True,
    ),
    _uses(
        r"write code program: (?:in )?(?P<o>[A-Z][\w+#.]*)(?: (?:all day|mostly|mainly))?\Z",
        accepts=_is_thing,
        past=False,
    ),
    _uses(r"subscribe: to (?P<o>(?:[Tt]he )?[A-Z].+)", "subscribe to {o}", past=False),
    _uses(
        r"be: (?:still |now )?on (?:an? )?(?P<o>(?:[A-Z]|i(?=[A-Z]))[\w+#.]*(?: \d[\w.]*)?(?:(?:, "
        r"| and )[A-Z][\w+#.]*(?: \d[\w.]*)?)*)(?=\Z|,| at | for )",
        accepts=is_product,
        many=True,
        confidence=0.7,
    ),
    _uses(
        rf"move: (?:over|{_MY_THINGS}(?! to an? )) (?:from .+? )?to (?P<o>(?:an? )?[A-Z].+)",
        mode=Mode.BEGAN,
        accepts=_is_thing,
    ),
    _uses(
        rf"switch migrate: (?:over |back |{_MY_THINGS} )?(?:from .+? )?to (?P<o>[A-Za-z].+?)(?: "
        r"(?:for|from|as|instead|in|at|on)\b.*)?\Z",
        mode=Mode.BEGAN,
        accepts=_names,
    ),
    _uses(rf"do keep write: {_MY_THINGS} in (?P<o>[A-Z].+)", past=False, accepts=_is_thing),
    row(
        r"be: on (?P<o>(?:(?:parental|maternity|paternity|sick|garden(?:ing)?|annual|study|adoption"
        r"|compassionate|unpaid) leave|a sabbatical|furlough))\b",
        "does",
        "be on {o}",
        aspect="leave",
        past=False,
    ),
)

STUDY = table_of(_ROWS)

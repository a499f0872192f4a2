"""Study and leave, languages, skills and tools."""

from __future__ import annotations

import re

from language.english.facts.rules import Mode, bare, row, table_of
from language.english.facts.vocabulary import LANGUAGE, is_product
from language.facts import STUDIES

_NAMED = tuple(LANGUAGE.removeprefix("(?:").removesuffix(")").split("|"))


_NO_SKILLS = tuple(
    (
        "more/how/the growth/the effect/the impact/the role/the relationship/whether/a lot/about/"
        "new things/so much/that/to be/from/the basics of"
    ).split("/")
)


def _is_skill(words: str) -> bool:
    return not words.lower().startswith(_NO_SKILLS)


def _names(words: str) -> bool:
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
    head = (
        words.lower()
        .removeprefix("fluent ")
        .removeprefix("some ")
        .removeprefix("a little ")
        .removeprefix("a bit of ")
        .removeprefix("only ")
    )
    return any(head.startswith(language) for language in _NAMED)


_ROWS = (
    row(
        "study",
        r"(?P<o>.+?) (?:at|in) (?P<org>[A-Z].+)\Z",
        "studies_at",
        "study {o} at {org}",
        kind="organisation",
        object="{org}",
        accepts=_is_skill,
    ),
    row("study", r"at (?P<o>.+)\Z", "studies_at", "study at {o}", kind="organisation"),
    row(
        "study",
        r"(?!(?:for|at|in|hard|a lot|with|how|more|all"
        r"|late)\b)(?P<o>.+?)(?: (?:at|in) (?:the |an? )?[A-Za-z].+)?\Z",
        "studies",
        "study {o}",
        accepts=_is_skill,
    ),
    row("major", r"in (?P<o>.+)", "studies", "study {o}"),
    row(
        "be",
        r"in (?:my|his|her) (?:first|second|third|fourth|fifth|sixth|final|last) year of"
        r" (?P<o>(?:[\w-]+ school|law|medicine|nursing|uni|university|college|dentistry|physics"
        r"|chemistry|biology|history|maths|engineering|architecture|economics|psychology)"
        r"(?: at [A-Z]\w+)?)(?=\Z|,| and )",
        "studies",
        "study at {o}",
        past=False,
    ),
    row("train", r"as (?P<o>an? .+)", "studies", "train as {o}", past=False),
    row(
        "do",
        r"(?P<o>(?:an?|my) (?:phd|doctorate|master'?s?(?: degree)?|mba|bachelor'?s?(?: degree)?"
        r"|degree|apprenticeship)(?: (?:in|on|as) .+?)?)(?: at (?P<org>.+))?\Z",
        "studies",
        "do {o}",
    ),
    row(
        "start begin",
        r"(?P<o>(?:an?|my) (?:phd|doctorate|master'?s?|mba|bachelor'?s?|degree|apprenticeship)"
        r"(?: degree)?(?: (?:in|on|as) .+?)?)(?: (?:at|with) (?P<org>.+))?\Z",
        "studies",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    *(
        row(verbs, tail, predicate, "study", mode=Mode.ENDED, object=STUDIES)
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
    row(
        "graduate",
        r"from (?P<o>.+)",
        "graduated_from",
        "graduate from {o}",
        mode=Mode.EVENT,
        kind="organisation",
    ),
    row("graduate", r"with (?P<o>an? .+)", "graduated_from", "graduate with {o}", mode=Mode.EVENT),
    row(
        "have",
        r"(?P<o>an? (?:phd|doctorate|master'?s?|mba|bachelor'?s?|degree"
        r"|diploma)(?: degree)? (?:in|from) .+)",
        "graduated_from",
        "have {o}",
    ),
    row(
        "speak",
        r"(?:fluent |some |a little |a bit of |basic |conversational |native "
        r"|good |only )?(?P<o>.+)",
        "speaks",
        "speak {o}",
        many=True,
        accepts=_is_language,
    ),
    row(
        "be",
        r"(?:fluent|bilingual) in (?P<o>.+)",
        "speaks",
        "speak {o}",
        many=True,
        accepts=_is_language,
    ),
    row("do", rf"(?P<o>{LANGUAGE})\b.*", "learns", "learn {o}", past=False),
    row(
        "study",
        r"for (?P<o>(?:my|the|an?) (?:[\w-]+ ){0,2}(?:exams?|test|certificate|diploma|bar))\b",
        "studies",
        "study for {o}",
        past=False,
    ),
    row(
        "learn study",
        rf"(?P<o>(?:{LANGUAGE})(?:,? (?:and )?{LANGUAGE})*)\b.*",
        "learns",
        "learn {o}",
        many=True,
    ),
    row("learn", r"(?:how )?to (?P<o>.+)", "learns", "learn to {o}", accepts=_is_skill, past=False),
    row("learn", r"(?!how|to )(?P<o>.+)", "learns", "learn {o}", accepts=_is_skill, past=False),
    row(
        "take", r"(?P<o>(?:[\w-]+ ){1,3}(?:lessons|classes))\b.*", "learns", "take {o}", past=False
    ),
    row(
        "know",
        r"(?P<o>(?:[A-Z][\w+#.]*(?: and )?)+) (?:well|inside out|pretty well"
        r"|quite well|well enough|a bit)",
        "knows",
        "know {o}",
        many=True,
    ),
    row(
        "use",
        r"(?P<o>.+?)(?: (?:for|to|on|at|as|every|daily|instead|in|with)\b.*)?\Z",
        "uses",
        "use {o}",
        accepts=_is_tool,
        many=True,
        past=False,
        confidence=0.7,
    ),
    row(
        "shoot write record draw knit ride fish",
        r"(?:with|on) (?P<o>(?:an? |my )?[A-Z].+?)(?: and (?:mostly|mainly) .*)?\Z",
        "uses",
        "use {o}",
        accepts=_is_tool,
        past=False,
    ),
    row("ride", r"(?P<o>an? (?:[\w-]+ )?[A-Z].+?)(?: (?:to|for|every)\b.*)?\Z", "owns", "ride {o}"),
    row(
        "be",
        r"(?:still |now )?on (?P<o>[A-Z][\w+#.]*(?: \d[\w.]*)?(?:(?:, "
        r"| and )[A-Z][\w+#.]*(?: \d[\w.]*)?)*)(?=\Z|,| at | for )",
        "uses",
        "use {o}",
        accepts=is_product,
        many=True,
        confidence=0.7,
    ),
    row(
        "move",
        r"over (?:from .+? )?to (?P<o>(?:an? )?[A-Z].+)",
        "uses",
        "use {o}",
        mode=Mode.BEGAN,
        accepts=_is_thing,
    ),
    row(
        "switch migrate",
        r"(?:over |back )?(?:from .+? )?to (?P<o>[A-Za-z].+?)(?: (?:for|from|as|instead|in|at"
        r"|on)\b.*)?\Z",
        "uses",
        "use {o}",
        mode=Mode.BEGAN,
        accepts=_names,
    ),
    row(
        "be",
        r"on (?P<o>(?:(?:parental|maternity|paternity|sick|garden(?:ing)?|annual|study|adoption"
        r"|compassionate|unpaid) leave|a sabbatical|furlough))\b",
        "does",
        "be on {o}",
        aspect="leave",
        past=False,
    ),
)

STUDY = table_of(_ROWS)

"""Projects a person speaks of as theirs: "my budget tracker", "building a portfolio website"."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from language.english.lexicon import words
from language.english.topics.prose import is_english
from language.english.topics.titles import Read
from language.extraction import WingFound

# What is worked at for weeks. One of these alone ("my app") may be any project.
_HEADS = (
    r"app|application|web app|website|web site|site|tracker|platform|game|thesis|dissertation"
    r"|novel|memoir|screenplay|cookbook|podcast|blog|newsletter|startup|shop|business|bakery"
    r"|restaurant|renovation|restoration|rebuild|conversion|documentary|exhibition|robot|plugin"
    r"|chatbot|dashboard|album|trilogy|project"
)
_MODIFIER = r"[^\W\d_][\w'’-]*"
_OWNED = re.compile(r"['’]s?\Z")
_PROJECT = re.compile(
    rf"(?i)\b(?P<how>my|our|(?:build|building|develop|developing|writ(?:e|ing)|creat(?:e|ing)"
    rf"|design|designing|launch|launching|restoring|rebuilding|renovating|working on) (?:a|an|the"
    rf"|my|our)) (?P<what>(?:{_MODIFIER} ){{1,4}}(?:{_HEADS}))(?!\w)"
)
# The same by other words.
_SYNONYMS = (
    ("website", "web site", "site"),
    ("app", "application", "web app", "project", ""),
    ("thesis", "dissertation"),
)
# How many of a person's messages name it, one of them as theirs.
_LEAST_NAMING = 2
_READ_CHARS = 1500
_MOST_MODIFIERS = 2
# What says nothing about which project it is.
_NO_MODIFIERS = ("function", "bland", "empty", "hollow", "adverbs", "software")
_ANY = frozenset(
    "personal own new first next little small big side current final simple basic group school"
    " science team class college university home web mobile main entire whole full complete"
    " responsive monolithic modern professional custom single-page static dynamic online own"
    " development work test demo sample existing".split()
)


def project_wing(reads: Sequence[Read]) -> WingFound | None:
    """The project that messages of the window name again and again as their writer's own."""
    asked = [read.prose[:_READ_CHARS] for read in reads if read.asks]
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in asked:
        for name in set(_named_in(text)):
            forms[_key(name)][name] += 1
    best: tuple[int, WingFound] | None = None
    for names in forms.values():
        wing = _wing(names)
        pattern = any_of((wing.name, *wing.aliases))
        times = sum(bool(pattern.search(text)) for text in asked)
        if times >= _LEAST_NAMING and (best is None or times > best[0]):
            best = times, wing
    return best[1] if best else None


def is_opened_with(reads: Sequence[Read], wing: WingFound) -> bool:
    """Whether the first message of a person names the project of a wing as theirs."""
    opening = next((read.prose[:_READ_CHARS] for read in reads if read.asks), "")
    named = any_of((wing.name, *wing.aliases)).pattern
    own = rf"\b(?:my|our|the) (?:[\w-]+ ){{0,2}}(?:{named})"
    return re.search(own, opening, re.IGNORECASE) is not None


def any_of(names: Sequence[str]) -> re.Pattern[str]:
    """Names as they may be written; an alias may come as a slug, "efoil-rebuild"."""
    split = [re.findall(r"\w+", name) for name in names]
    alternatives = "|".join(r"[\W_]+".join(parts) for parts in split if parts)
    return re.compile(rf"(?<!\w)(?:{alternatives or '(?!)'})(?!\w)", re.IGNORECASE)


def _named_in(text: str) -> Iterator[str]:
    if not is_english(text):
        return
    for match in _PROJECT.finditer(text):
        *modifiers, head = match["what"].lower().replace("web site", "website").split()
        if any(_OWNED.search(word) for word in modifiers):
            continue  # "My brother's restaurant" is his.
        told = [word for word in modifiers if _says_which(word)]
        # "My app that uses the tracker" has a clause between, so its words are not of one name.
        between = modifiers[modifiers.index(told[0]) :] if told else []
        if told and len(between) == len(told):
            yield " ".join((*told[-_MOST_MODIFIERS:], head))


def _says_which(word: str) -> bool:
    return word not in _ANY and not any(word in words(name) for name in _NO_MODIFIERS)


def _key(name: str) -> str:
    """The same for names that differ only in how the kind of thing is called."""
    *modifiers, head = name.split()
    if head == "project" and len(modifiers) > 1:
        return _key(" ".join(modifiers))  # "Budget tracker project".
    same = next((each[0] for each in _SYNONYMS if head in each), head)
    return " ".join((*modifiers, same))


def _wing(names: Counter[str]) -> WingFound:
    """Named by its usual form; the other forms, and those of the same meaning, are aliases."""
    usual = _usual(names)
    *modifiers, head = usual.split()
    alike = next((each for each in _SYNONYMS if head in each and modifiers), ())
    others = {" ".join((*modifiers, other)).strip() for other in alike}
    # One modifier alone ("budget") is any word.
    aliases = sorted(name for name in {*others, *names} - {usual} if " " in name)
    return WingFound("project", usual[:1].upper() + usual[1:], tuple(aliases))


def _usual(names: Counter[str]) -> str:
    best = min(names, key=lambda name: (-names[name], len(name), name))
    shorter = best.removesuffix(" project")
    return shorter if " " in shorter else best

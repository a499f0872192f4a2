"""Names in a window: people, places, things, and projects that their writer names as theirs ("my
budget tracker"). A missing name costs less than a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from language.english import words
from language.english.topics.name_kinds import (
    Evidence,
    cues,
    is_greeted,
    is_personal,
    is_word_too,
    kind_of,
    listed_kind,
    opens_sentence,
)
from language.english.topics.phrases import is_english
from language.english.topics.titles import Read
from language.extraction import Context, EntityFound, KnownEntity, Span, WingFound

_UPPER = r"A-ZÀ-ÖØ-ÞĀĆČĐĒĞİŁŃÓŌŘŚŞŠŪŽŹŻ"
_WORD = rf"(?:[{_UPPER}][\w’'&.-]*\w|[{_UPPER}]\.?)"
_JOINT = r"(?:(?:of|the|de|da|del|della|di|la|le|van|von|der|&|and)[ ]){0,2}"
# Capitalised words in a row, with the small words that names are joined by.
_RUN = re.compile(rf"(?<![\w’'@#/.-]){_WORD}(?:[ ]{_JOINT}(?:{_WORD}|\d{{1,4}}(?:\.\d+)*\b))*")
_LETTERS = re.compile(r"[^\W\d_]+")
_AND = re.compile(r"( and (?:the )?)")
_GENITIVE = re.compile(r"['’]s?$")
_TRAILING_JOINT = re.compile(r"(?: (?:of|the|de|da|la|le|van|von|der|di|&))+$")
_LEADING_JOINT = re.compile(r"(?:of|the|de|da|la|le|van|von|der|di|&) ")
# Of the words of a sentence; headings have more.
_MOST_CAPITALS = 0.75
_MOST_WORDS = 6
# What is longer is pasted matter more than its writer's own words.
_READ_CHARS = 4000

_WORK = re.compile(
    r"(?i)\b(?:book|novel|memoir|movie|film|documentary|song|album|game|podcast|series|show|musical"
    r"|play)s?(?:,| called| titled| named| is| was)? [\"“]([^\"“”\n]{2,60}?),?[\"”]"
)
_PROJECT = re.compile(
    rf"\b(?:[Pp]roject (?:called|named|code-?named) [\"“]?|Project )({_WORD}(?: {_WORD}){{0,2}})"
)
_NO_NAMES = ("function", "greetings", "not_names", "adverbs", "bland")


@dataclass(frozen=True, slots=True)
class Named:
    """What may be names, before anybody is asked what is known of them.

    Attributes:
        works: Books, films, projects … that are named as such, each with its kind.
        others: The evidence for every other name.
    """

    works: Mapping[str, str]
    others: Mapping[str, Evidence]

    def names(self) -> set[str]:
        return {*self.works, *self.others}


def gather(reads: Sequence[Read]) -> Named:
    """Names in what people wrote; the assistant's turns are only searched for them again."""
    return Named(_works(reads), _gathered(reads))


def find_entities(
    reads: Sequence[Read], gathered: Named, context: Context
) -> tuple[EntityFound, ...]:
    """Who and what the window names, in order of first mention, with every place it is named."""
    kinds = dict(gathered.works)
    known = context.entities.named({*gathered.names(), *context.speakers})
    for name, seen in gathered.others.items():
        recognised = known.get(name.casefold())
        kind = recognised.kind if recognised else kind_of(name, seen)
        if kind and (seen.within or seen.cues or " " in name or not is_word_too(name)):
            kinds[name] = kind
    kinds |= {speaker: "person" for speaker in context.speakers if is_personal(speaker)}
    return located(kinds, known, context.speakers, [read.prose for read in reads])


def _gathered(reads: Sequence[Read]) -> dict[str, Evidence]:
    evidence: dict[str, Evidence] = defaultdict(Evidence)
    for read in reads:
        if read.asks and not _is_shouted(read.prose):
            found: dict[str, Evidence] = defaultdict(Evidence)
            for line in filter(_is_plain, read.prose[:_READ_CHARS].split("\n")):
                _gather_from(line, found)
            is_read = is_english(read.prose) if found else True
            for name, seen in found.items():
                evidence[name].add(seen, english=is_read)
    everything = " ".join(read.prose for read in reads if read.asks)
    for name, seen in evidence.items():
        seen.lowercase = f" {name.lower()}" in everything
    return dict(evidence)


def _is_plain(line: str) -> bool:
    """Written in sentences: in headings and lists of titles every word has a capital."""
    found: list[str] = _LETTERS.findall(line)
    if len(found) <= 3:
        return True
    capitals = sum(word[0].isupper() for word in found)
    return capitals <= _MOST_CAPITALS * len(found)


def _is_shouted(prose: str) -> bool:
    letters = "".join(_LETTERS.findall(prose[:600]))
    return len(letters) > 12 and sum(map(str.isupper, letters)) > 0.4 * len(letters)


def _gather_from(line: str, evidence: dict[str, Evidence]) -> None:
    for match in _RUN.finditer(line):
        opens = opens_sentence(line[: match.start()][-5:])
        for start, name in _names_in(match.group(), match.start(), opens=opens):
            before = line[max(0, start - 40) : start]
            after = line[start + len(name) : start + len(name) + 30]
            seen = evidence[name]
            if opens_sentence(before) and not is_greeted(before, after):
                seen.opening += 1
            else:
                seen.within += 1
            for cue in cues(before, after):
                seen.cues[cue] += 1


def _names_in(run: str, start: int, *, opens: bool) -> Iterator[tuple[int, str]]:
    """A run of capitalised words without what only opened the sentence; "A and B" are two."""
    offset = 0
    for part in _AND.split(run) if " and " in run else (run,):
        begin, offset = start + offset, offset + len(part)
        if part.startswith(" and "):
            continue
        name = part
        while name and not _is_listed(name):
            first = name.split(" ", 1)[0]
            # "Will" within a sentence is not the verb.
            if not _is_no_name(first) or (is_word_too(first) and not opens):
                break
            begin, name = begin + len(first) + 1, name[len(first) + 1 :]
        name = _without_tail(name)
        if _LEADING_JOINT.match(name):
            continue
        if len(name) > 1 and len(name.split()) <= _MOST_WORDS:
            yield begin, name


def _is_listed(name: str) -> bool:
    return listed_kind(name) is not None and not name.startswith("The ")


def _without_tail(name: str) -> str:
    name = _GENITIVE.sub("", name.rstrip(".&'’-"))
    if " " not in name:
        return name
    while " " in name and not listed_kind(name) and _is_tail(name.rsplit(" ", 1)[1]):
        name = name.rsplit(" ", 1)[0]
    return _TRAILING_JOINT.sub("", name)


def _is_tail(word: str) -> bool:
    """ "I", "Monday": what follows a name without being part of it. Abbreviations may be."""
    return _is_no_name(word) and (word == "I" or not word.isupper())


@lru_cache(maxsize=10_000)
def _is_no_name(word: str) -> bool:
    plain = re.sub(r"['’](?:s|m|ve|re|ll|d|t)?$", "", word).lower()
    whole = word.lower().replace("’", "'")
    return any(plain in words(listing) or whole in words(listing) for listing in _NO_NAMES)


def _works(reads: Sequence[Read]) -> dict[str, str]:
    """Books, films, songs … that are named as such, and projects that are."""
    found: dict[str, str] = {}
    for read in reads:
        if read.asks:
            prose = read.prose[:_READ_CHARS]
            found |= {title: "item" for title in _WORK.findall(prose) if title[0].isupper()}
            found |= dict.fromkeys(_PROJECT.findall(prose), "project")
    return found


# Shorter forms of a speaker's name are too short to be told from other words.
_LEAST_SHORT = 3


def located(
    kinds: Mapping[str, str],
    known: Mapping[str, KnownEntity],
    speakers: Sequence[str],
    proses: Sequence[str],
) -> tuple[EntityFound, ...]:
    """Entities in order of first mention; those that are nowhere to be found are left out.

    Args:
        kinds: Each name's kind.
        known: The palace's entities by their names in lower case.
        proses: The turns' texts, or texts of the same length.
    """
    if not kinds:
        return ()
    mains = _mains(kinds, known, speakers)
    spans: dict[str, list[Span]] = {}
    written: dict[str, set[str]] = defaultdict(set)
    for name, span in _spans(kinds, proses):
        spans.setdefault(mains[name], []).append(span)
        written[mains[name]].add(name)
    return tuple(
        EntityFound(
            _kind(main, kinds, known), main, tuple(places), tuple(sorted(written[main] - {main}))
        )
        for main, places in spans.items()
    )


def _kind(main: str, kinds: Mapping[str, str], known: Mapping[str, KnownEntity]) -> str:
    recognised = known.get(main.casefold())
    return recognised.kind if recognised else kinds[main]


def _mains(
    kinds: Mapping[str, str], known: Mapping[str, KnownEntity], speakers: Sequence[str]
) -> dict[str, str]:
    """Each name, and the name it is filed under."""
    people = [name for name, kind in kinds.items() if kind == "person"]
    mains: dict[str, str] = {}
    for name, kind in kinds.items():
        recognised = known.get(name.casefold())
        longer = _longer(name, people, speakers) if kind == "person" else None
        mains[name] = recognised.name if recognised else longer or name
    return mains


def _longer(name: str, people: Iterable[str], speakers: Sequence[str]) -> str | None:
    """The one full name or speaker that a short name stands for: "Mel", of Melanie."""
    if " " in name:
        return None
    full = {other for other in people if " " in other and name in _first_and_last(other)}
    if not full and len(name) >= _LEAST_SHORT and name not in speakers:
        # A speaker's handle, such as "Melanie2", is nobody's name.
        full = {other for other in people if other in speakers and other.startswith(name)}
    return full.pop() if len(full) == 1 else None


def _first_and_last(name: str) -> tuple[str, str]:
    parts = name.split()
    return parts[0], parts[-1]


def _spans(names: Iterable[str], proses: Sequence[str]) -> Iterator[tuple[str, Span]]:
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    either = "|".join(map(re.escape, longest_first))
    pattern = re.compile(rf"(?<![\w@#/])(?:{either})(?![\w@+#]|\.\d)")
    for at, prose in enumerate(proses):
        for match in pattern.finditer(prose):
            if not _is_the_word(match):
                yield match.group(), Span(at, match.start(), match.end())


def _is_the_word(match: re.Match[str]) -> bool:
    """Whether "Will" is no name here but opens the sentence."""
    if not is_word_too(match.group()):
        return False
    before = match.string[max(0, match.start() - 5) : match.start()]
    return opens_sentence(before) and match.string[match.end() : match.end() + 1] not in ",!'’"


# What is worked at for weeks. One of these alone ("my app") may be any project.
_HEADS = (
    r"app|application|web app|website|web site|site|tracker|platform|game|thesis|dissertation"
    r"|novel|memoir|screenplay|cookbook|podcast|blog|newsletter|startup|shop|business|bakery"
    r"|restaurant|renovation|restoration|rebuild|conversion|documentary|exhibition|robot|plugin"
    r"|chatbot|dashboard|album|trilogy|project"
)
_MODIFIER = r"[^\W\d_][\w'’-]*"
_OWNED = re.compile(r"['’]s?\Z")
_OWN_PROJECT = re.compile(
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
_ASKED_CHARS = 1500
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
    asked = [read.prose[:_ASKED_CHARS] for read in reads if read.asks]
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
    opening = next((read.prose[:_ASKED_CHARS] for read in reads if read.asks), "")
    named = any_of((wing.name, *wing.aliases)).pattern
    own = rf"\b(?:my|our|the) (?:[\w-]+ ){{0,2}}(?:{named})"
    return re.search(own, opening, re.IGNORECASE) is not None


def own_projects(asked: Sequence[str], besides: re.Pattern[str]) -> Counter[str]:
    """How many messages name each project as their writer's own, without those of a pattern."""
    named = Counter(_key(name) for text in asked for name in set(_named_in(text)))
    return Counter({name: times for name, times in named.items() if not besides.search(name)})


def any_of(names: Sequence[str]) -> re.Pattern[str]:
    """Names as they may be written; an alias may come as a slug, "efoil-rebuild"."""
    split = [re.findall(r"\w+", name) for name in names]
    alternatives = "|".join(r"[\W_]+".join(parts) for parts in split if parts)
    return re.compile(rf"(?<!\w)(?:{alternatives or '(?!)'})(?!\w)", re.IGNORECASE)


def _named_in(text: str) -> Iterator[str]:
    if not is_english(text):
        return
    for match in _OWN_PROJECT.finditer(text):
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

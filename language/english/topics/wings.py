"""Which wing a conversation belongs to: people first, then known subjects, then areas of life.

Areas are recognised by likeness to example messages, kept as data in areas.json. Where nothing
comes again, the answer depends on the conversation and on wings that a person made, not on the
order of mining. A project that its writer names as theirs has its wing at once; somebody or
something else that is named again and again, from the third conversation on. Areas are marked as
such: whoever files decides when one has a wing. Rooms that are filed stay where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np

from language.analyzer import ENGLISH, language_of
from language.english import stem_all, words
from language.english.topics.name_kinds import is_personal, is_program, is_word_too
from language.english.topics.names import any_of, is_opened_with, own_projects, project_wing
from language.english.topics.titles import Read
from language.extraction import Context, Embed, Vectors, WingFound, normalised

EVERYDAY = WingFound("topic", "Everyday talk")

# Below this likeness to every area, none of them is meant.
_LEAST_LIKENESS = 0.22
# In other languages an embedder of English sees loan words and names at best.
_LEAST_FOREIGN = 0.3
_ALIKE_BY_LANGUAGE = frozenset(("Writing & language", "Software & computers"))
# Where there is no likeness to go by: as much as two words of an area.
_LEAST_KEYWORDS = 1.5
# Fewer words than this are about nothing: "ok, do that".
_LEAST_WORDS = 3
# A known subject is what a conversation is about when this share of a person's turns name it.
_SHARE_NAMING = 0.3
_LEAST_NAMING = 2
# Where a talk names a project once, as many things tell that it is about it.
_LEAST_THINGS = 3
# A talk of so few messages of a person's is a question or two.
_SHORT_TALK = 3
# Likeness to an area is that to its closest examples.
_CLOSEST = 3
_KEYWORD_WEIGHT = 0.08

_PROJECT_TITLE = re.compile(
    r"(?i)(?:(?:the|my|our) )?(?P<what>[\w'’-]+(?: [\w'’-]+){0,2}) "
    r"(?P<form>rebuild|restoration|project)"
)
_ANY_PROJECT = frozenset(
    "school group science new side personal final team python java javascript react web data"
    " research class college university home art craft diy first big work history math".split()
)

_GENERIC = frozenset(
    "new chat|new conversation|untitled|untitled chat|untitled conversation|chat|conversation"
    "|session|none|unnamed|no title|general|default|test|dm|direct message|thread".split("|")
)
_NUMBERED = re.compile(
    r"(?i)(?:chat|session|conversation|conv|dialogue|thread|room|part|d|s)?[\s_#.:-]*[\d\s_#.:/-]+"
)
# What a day and an hour are written with. Each alternative begins differently, so that however
# long a title is, it is read once.
_DATED = re.compile(
    r"(?i)\d(?:[\d\s.,:/+-]|(?<=\d)(?:st|nd|rd|th|am|pm|[tzh])\b|(?<=\d)t(?=\d)"
    r"|\b(?:am|pm|utc|gmt|at|on|of|morning|afternoon|evening|night|session|chat|conversation"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b)*"
)


@dataclass(frozen=True, slots=True)
class Area:
    name: str
    words: frozenset[str]
    examples: tuple[str, ...]


def is_real_title(title: str) -> bool:
    """Whether a source's title says something, unlike "New chat", a date or an id."""
    plain = " ".join(title.split())
    if plain.lower() in _GENERIC or not re.search(r"[^\W\d_]{2}", plain):
        return False
    if _NUMBERED.fullmatch(plain) or _DATED.fullmatch(plain):
        return False
    is_id = " " not in plain and plain.isascii() and bool(re.search(r"[\d_]", plain))
    return not is_id


@dataclass(frozen=True, slots=True)
class Naming:
    """
    Attributes:
        times: How many of a person's messages name a project.
        is_own: One of them names it as theirs: "my budget tracker", "the old budget tracker".
    """

    times: int
    is_own: bool


def find_wing(
    reads: Sequence[Read], vectors: Vectors | None, context: Context, embed: Embed
) -> WingFound:
    """The wing by the first rule that applies."""
    return (
        _people_wing(reads, context)
        or _known_wing(reads, context)
        or _project_wing(context)
        or _agent_wing(context)
        or project_wing(reads)
        or _returning_wing(reads, context)
        or _area_wing(reads, vectors, context, embed)
    )


def compared(reads: Sequence[Read], context: Context) -> list[str]:
    """What `find_wing` will have embedded, unless a wing that is known settles it."""
    if _people_wing(reads, context) or _project_wing(context) or _agent_wing(context):
        return []
    title = [context.title] if is_real_title(context.title) else []
    return [areas()[0].name, *title]


def _people_wing(reads: Sequence[Read], context: Context) -> WingFound | None:
    """Two people who talk with each other, or one person the user talks with."""
    named = {*context.speakers, *(read.turn.speaker for read in reads if read.turn.speaker)}
    people = sorted(name for name in named if is_personal(name) and name != context.agent)
    if len(people) == 2:
        return pair_wing(*people)
    speaks_with_user = any(read.turn.role == "user" and not read.turn.speaker for read in reads)
    assistant_speaks = any(
        read.turn.role == "assistant" and not is_personal(read.turn.speaker) for read in reads
    )
    if len(people) == 1 and speaks_with_user and not assistant_speaks:
        return WingFound("person", people[0])
    return None


def pair_wing(one: str, other: str) -> WingFound:
    """The same wing whoever comes first."""
    first, second = sorted((one, other))
    aliases = (f"{second} & {first}", f"{first} and {second}", f"{second} and {first}")
    return WingFound("person", f"{first} & {second}", aliases)


def _known_wing(reads: Sequence[Read], context: Context) -> WingFound | None:
    """A wing of the palace that is named in the title or again and again by a person."""
    asked = [read.prose for read in reads if read.asks]
    least = max(_LEAST_NAMING, _SHARE_NAMING * len(asked))
    best: tuple[float, str] | None = None
    chosen = None
    for wing in context.wings:
        if wing.kind == "agent" or is_area(wing):
            continue
        if _is_asked_about(asked, wing):
            return wing
        pattern = any_of((wing.name, *wing.aliases))
        turns = sum(bool(pattern.search(prose)) for prose in asked)
        if wing.kind == "project" and turns and is_opened_with(reads, wing):
            turns += int(least)
        score = turns + (
            100.0 if is_real_title(context.title) and pattern.search(context.title) else 0
        )
        if score >= least and (best is None or (-score, wing.name) < best):
            best, chosen = (-score, wing.name), wing
    return chosen


def _is_asked_about(asked: Sequence[str], wing: WingFound) -> bool:
    """Whether a short talk asks about somebody who has a wing, alone or with another person."""
    if wing.kind != "person" or len(asked) > _SHORT_TALK:
        return False
    names = [name for name in wing.name.split(" & ") if not is_word_too(name)]
    if not names:
        return False
    name = rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)"
    about = re.compile(
        rf"(?i)\babout {name}|\b(?:what|when|where|which|why|how|who|whose|did|does|do|is|was|has"
        rf"|had|will|would)\b(?:(?![.!?:]\s)[^\n]){{0,60}}?(?-i:{name})(?! (?:asks|asked|says|said"
        rf"|wants))(?:(?![.!]\s)[^\n]){{0,120}}?\?"
    )
    return any(about.search(text[:600]) for text in asked)


def _returning_wing(reads: Sequence[Read], context: Context) -> WingFound | None:
    """Somebody or something that this talk and two before it name again and again."""
    if not context.returning:
        return None
    asked = [read.prose for read in reads if read.asks]
    least = max(_LEAST_NAMING, _SHARE_NAMING * len(asked))
    best: tuple[float, str] | None = None
    chosen = None
    for entity in context.returning:
        turns = sum(bool(any_of([entity.name]).search(prose)) for prose in asked)
        if turns >= least and (best is None or (-turns, entity.name) < best):
            best, chosen = (-turns, entity.name), entity
    if chosen is None:
        return None
    # Wings of pets are of the kind of people's, so that questions about them find these.
    kinds = {"person": "person", "pet": "person", "project": "project"}
    kind = kinds.get(chosen.kind, "topic")
    return WingFound(kind, chosen.name, chosen.aliases)


def naming(asked: Sequence[str], wing: WingFound) -> Naming:
    """How a conversation names a project.

    Args:
        asked: The prose of the person's messages.
    """
    names = _names_of(wing)
    # "The main thing" is not said of a folder called main.
    single = wing.name[:1].upper() + wing.name[1:] if re.fullmatch(r"\w+", wing.name) else ""
    either = any_of(names).pattern + (rf"|(?-i:\b{single}\b)" if single else "")
    # To look for one word of each name first takes a tenth of the time.
    rarest = {max(re.findall(r"\w+", name), key=len).lower() for name in (*names, single) if name}
    asked = [prose for prose in asked if any(word in prose.lower() for word in rarest)]
    times = sum(bool(re.search(either, prose, re.IGNORECASE)) for prose in asked)
    own = re.compile(rf"(?i)\b(?:my|our|the) (?:[\w-]+ ){{0,2}}(?:{either})")
    return Naming(times, is_own=times > 0 and any(own.search(prose) for prose in asked))


def is_told_of(asked: Sequence[str], named: Naming, things: int, wing: WingFound) -> bool:
    """Whether a whole conversation, filed by its first messages, is about a project.

    Of one that names it again and again, its name tells; of one that names it as the person's own,
    and no other project as often, what else it names.

    Args:
        things: How much it names that is named in the project's conversations, and hardly
            elsewhere.
    """
    if named.times >= max(_LEAST_NAMING, _SHARE_NAMING * len(asked)):
        return True
    if not named.is_own or things < _LEAST_THINGS:
        return False
    # "My Budget tracker" is no other project than "Budget".
    own = rf"{any_of(_names_of(wing)).pattern}|\b{re.escape(wing.name)}\b"
    others = own_projects(asked, besides=re.compile(own, re.IGNORECASE))
    return named.times > max(others.values(), default=0)


def _names_of(wing: WingFound) -> list[str]:
    """A name or an alias of one word may be any word."""
    return [name for name in (wing.name, *wing.aliases) if len(re.findall(r"\w+", name)) > 1]


def _project_wing(context: Context) -> WingFound | None:
    """Only when the source's title says so: "Efoil rebuild", "The Harbour project"."""
    match = _PROJECT_TITLE.fullmatch(" ".join(context.title.split()))
    if match is None or match["what"].split()[0].lower() in _ANY_PROJECT:
        return None
    name = f"{match['what']} {match['form'].lower()}"
    return WingFound("project", name[:1].upper() + name[1:])


def _agent_wing(context: Context) -> WingFound | None:
    agent = context.agent.strip()
    return None if is_program(agent) else WingFound("agent", agent)


def _area_wing(
    reads: Sequence[Read], vectors: Vectors | None, context: Context, embed: Embed
) -> WingFound:
    scores = _KEYWORD_WEIGHT * _keyword_scores(reads, context)
    if not scores.any() and _says_little(reads, context):
        return EVERYDAY
    least = _KEYWORD_WEIGHT * _LEAST_KEYWORDS
    if vectors is not None:
        scores = scores + _likeness(reads, vectors, context, embed)
        least = _LEAST_LIKENESS
        asked = " ".join(read.prose[:300] for read in reads if read.asks)
        if asked.strip() and language_of(asked) != ENGLISH:
            # What is alike is the language, not the matter.
            scores[[area.name in _ALIKE_BY_LANGUAGE for area in areas()]] = 0
            least = _LEAST_FOREIGN
    best = int(np.argmax(scores))
    if scores[best] < least:
        return EVERYDAY
    return WingFound("topic", areas()[best].name, is_area=True)


def _says_little(reads: Sequence[Read], context: Context) -> bool:
    """Also what is written in an alphabet that the embedder and the word lists do not know."""
    asked = " ".join([context.title, *(read.prose[:600] for read in reads if read.asks)])
    letters = re.findall(r"[^\W\d_]", asked)
    if sum(letter < "\u0250" for letter in letters) < len(letters) / 2:
        return True
    said = set(re.findall(r"[^\W\d_]{2,}", asked.lower()))
    return len(said - words("function") - words("greetings")) < _LEAST_WORDS


def _likeness(reads: Sequence[Read], vectors: Vectors, context: Context, embed: Embed) -> Vectors:
    """Of the conversation to each area; people's turns, the first and a real title count most."""
    weights = np.array([_weight(read) for read in reads], np.float32)
    opening = next((at for at, read in enumerate(reads) if read.asks), 0)
    rows = [(vectors * weights[:, None]).sum(axis=0), vectors[opening]]
    if is_real_title(context.title):
        rows.append(embed([context.title])[0])
    # Not the matrix product: its threads wait for one another on busy cores.
    cosines = np.einsum("rd,pd->rp", normalised(np.stack(rows)), prototypes(embed))
    by_area = [np.sort(cosines[:, a:b])[:, -_CLOSEST:].mean() for a, b in _area_columns()]
    return np.array(by_area, np.float32)


def _weight(read: Read) -> float:
    substance = min(len(read.prose), 120) / 120
    return (0.05 + substance) * (1.0 if read.asks else 0.3)


def _keyword_scores(reads: Sequence[Read], context: Context) -> Vectors:
    """Logarithm of how often each area's words occur in what people wrote."""
    asked = " ".join([context.title, *(read.prose[:600] for read in reads if read.asks)])
    found = stem_all(re.findall(r"[a-z][a-z'-]+", asked.lower()))
    counts = [0] * len(areas())
    for word in found:
        for at in _areas_by_word().get(word, ()):
            counts[at] += 1
    return np.asarray(np.log1p(counts) / np.log(2), np.float32)


@cache
def areas() -> tuple[Area, ...]:
    data = json.loads(Path(__file__).with_name("areas.json").read_text(encoding="utf-8"))
    return tuple(
        Area(row["name"], frozenset(stem_all(row["words"].split())), tuple(row["examples"]))
        for row in data
    )


@cache
def _areas_by_word() -> dict[str, list[int]]:
    by_word: dict[str, list[int]] = {}
    for at, area in enumerate(areas()):
        for word in area.words:
            by_word.setdefault(word, []).append(at)
    return by_word


def is_area(wing: WingFound) -> bool:
    """Also one that a person renamed: its first name stays among the aliases."""
    return any(key_of(name) in _area_keys() for name in (wing.name, *wing.aliases))


@cache
def _area_keys() -> frozenset[str]:
    return frozenset(map(key_of, (EVERYDAY.name, *(area.name for area in areas()))))


def key_of(name: str) -> str:
    """A name as it is matched, whatever its case and signs."""
    return "-".join(re.findall(r"\w+", name.lower()))


@cache
def _area_columns() -> tuple[tuple[int, int], ...]:
    ends = np.cumsum([len(area.examples) + 1 for area in areas()]).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


_made: list[Vectors] = []
# They are some four hundred texts: of those that need them first, one embeds them for all.
_making = Lock()


def prototypes(embed: Embed) -> Vectors:
    """A unit vector for each area's name and examples, area after area; made once a process.

    The first row is embedded anew each time (it costs a few words) and tells whether the vectors
    at hand are this model's.
    """
    texts = [text for area in areas() for text in (area.name, *area.examples)]
    probe = embed(texts[:1])
    with _making:
        if not (_made and _is_of_same_model(_made[0][0], probe[0])):
            _made[:] = [np.asarray(embed(texts), np.float32)]
        return _made[0]


def _is_of_same_model(vector: Vectors, other: Vectors) -> bool:
    return vector.shape == other.shape and float(vector @ other) > 0.99

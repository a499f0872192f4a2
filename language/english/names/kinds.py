"""What a name names: by the lists, by its last word, or by the company it keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from language.english.lexicon import words

_ENDINGS = {
    ending: kind
    for kind, endings in {
        "place": "park beach lake river island islands mountain mountains street avenue square"
        " valley bay canyon forest desert museum gallery cathedral temple palace castle airport"
        " station bridge harbor harbour zoo garden gardens falls coast peninsula county village"
        " library theater theatre stadium arena cafe café restaurant hotel mall plaza house",
        "organisation": "inc corp corporation llc ltd gmbh university college institute bank"
        " foundation company association hospital academy committee agency society council"
        " department ministry school church clinic airlines records studios ventures brewery"
        " bakery league union",
        "event": "festival conference marathon cup olympics parade convention summit expo fair"
        " tournament championship championships hackathon gala awards fest prix carnival symposium",
        "item": "show podcast guitar",
    }.items()
    for ending in endings.split()
}
_FRONTS = {"mount": "place", "mt.": "place", "lake": "place", "university": "organisation"}
_LISTS = {
    "event": "events",
    "place": "places",
    "organisation": "organisations",
    "item": "software",
}
# Words as well as names: a capital at the beginning of a sentence is no proof.
_WORDS_TOO = frozenset(
    "nice reading turkey mobile buffalo phoenix gap target notion zoom oracle thrive rei intel jeep"
    " reddit unity rust swift vue bali java ruby patagonia python blender illustrator mit amazon"
    " orange flask spring express go".split()
)


# What these make is no thing to own.
_MAKES_NO_ITEMS = frozenset(
    "mit stanford harvard yale princeton caltech ucla unicef unesco nato fbi cia nasa disney bbc"
    " cnn espn nbc cbs universal studios".split()
)


@dataclass(slots=True)
class Evidence:
    """What speaks for a name in one window."""

    within: int = 0  # Times within a sentence, where a capital means something.
    opening: int = 0
    lowercase: bool = False  # The window has it without capitals, too.
    cues: Counter[str] = field(default_factory=Counter)


def kind_of(name: str, seen: Evidence) -> str | None:
    """One of `Entity.Kind`; None if the name may be no name at all."""
    listed = listed_kind(name)
    if listed is not None:
        return _sure_of_listed(name, listed, seen)
    return _by_ending(name, seen) or _as_person(name, seen) or _by_cue(name, seen)


def is_word_too(name: str) -> bool:
    """Whether a first name is also a common word: "Will", "Grace"."""
    return name.lower() in words("also_words")


@lru_cache(maxsize=10_000)
def listed_kind(name: str) -> str | None:
    plain = name.lower().replace("’", "'").removeprefix("the ")
    return next((kind for kind, listing in _LISTS.items() if plain in words(listing)), None)


def _sure_of_listed(name: str, kind: str, seen: Evidence) -> str | None:
    plain = name.lower()
    if kind == "place" and plain in words("first_names") and not seen.cues["place"]:
        # "Florence", "Sydney": a person as soon as anything says so.
        return "person" if seen.cues["person"] or seen.cues["someone"] else kind
    if plain in _WORDS_TOO:
        is_proved = seen.within and (kind != "place" or seen.cues["place"])
        return kind if is_proved else None
    return kind


def _by_ending(name: str, seen: Evidence) -> str | None:
    parts = name.lower().rstrip(".").split()
    if len(parts) < 2 or seen.cues["person"]:
        return None
    if parts[-1] in _ENDINGS:
        return _ENDINGS[parts[-1]]
    if parts[0] in _MAKES_NO_ITEMS:
        return "organisation"
    if parts[0] in words("organisations") - _WORDS_TOO or parts[0] == "amazon":
        return "event" if parts[-1] in ("day", "sale", "sales") else "item"
    return _FRONTS.get(parts[0])


def _as_person(name: str, seen: Evidence) -> str | None:
    parts = name.split()
    if len(parts) > 3 or not all(map(_could_be_someones, parts)):
        return None
    if parts[0].lower() in words("first_names"):
        is_named = all(map(_is_odd, parts[1:])) if parts[1:] else _proves_first_name(name, seen)
        return "person" if is_named else None
    is_called_so = seen.cues["person"] > seen.cues["place"] and len(parts) <= 2
    is_name = len(parts[0]) > 2 and all(map(_is_odd, parts)) and not seen.lowercase
    return "person" if is_called_so and is_name else None


def _could_be_someones(part: str) -> bool:
    letters = part.translate({ord(sign): None for sign in "-'’."})
    return letters.isalpha() and not (part.isupper() and len(part) > 2)


def _proves_first_name(name: str, seen: Evidence) -> bool:
    if seen.cues["place"]:
        return False
    if is_word_too(name):
        return bool(seen.cues["person"]) or (seen.within > 0 and bool(seen.cues["someone"]))
    return bool(seen.within or seen.cues or seen.opening)


def _is_odd(word: str) -> bool:
    """Not an everyday English word that happened to get a capital."""
    plain = word.lower()
    everyday = (
        "verbs",
        "verbs_or_nouns",
        "empty",
        "software",
        "organisations",
        "bland",
        "activities",
    )
    return not any(
        plain in words(listing) or plain.removesuffix("s") in words(listing) for listing in everyday
    )


def _by_cue(name: str, seen: Evidence) -> str | None:
    if not seen.within or seen.lowercase or any(map(str.isdigit, name)) or name.isupper():
        return None
    return next((kind for kind in ("organisation", "place") if seen.cues[kind]), None)

"""Where names stand in the turns, and which of them are one and the same's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from language.english.names.cues import opens_sentence
from language.english.names.kinds import is_word_too
from language.extraction import EntityFound, KnownEntity, Span

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
    pattern = re.compile(rf"(?<![\w@#/])(?:{either})(?![\w@+#])")
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

"""Drafts: what a window says by itself, before what the palace knows is brought in.

Windows wait for one another to be read, as each may name what the next one meets again. Their
drafts need not wait: so the texts of many windows are embedded, and their names looked up, at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from language.english.names.finding import Named, gather
from language.english.names.speakers import is_personal
from language.english.topics.prose import prose
from language.english.topics.segments import segments
from language.english.topics.subjects import compared
from language.english.topics.titles import Read, Shortlist, contested, title_candidates
from language.extraction import Context, Vectors
from language.transcripts import Turn


@dataclass(frozen=True, slots=True)
class Draft:
    """
    Attributes:
        spans: First and last turn of each stretch about one thing.
        shortlists: For each stretch the phrases that may be its title.
        compared: What else is compared by meaning.
    """

    reads: Sequence[Read]
    named: Named
    spans: Sequence[tuple[int, int]]
    shortlists: Sequence[Shortlist]
    compared: Sequence[str]

    def texts(self) -> Iterator[str]:
        """What reading the window will have embedded, as far as can be told."""
        yield from self.compared
        for shortlist in self.shortlists:
            yield from contested(shortlist)


def draft(window: Sequence[Turn], vectors: Vectors | None, context: Context) -> Draft:
    """Of a window of at least one turn; of what is known only title and speakers are used."""
    reads = [_read(turn) for turn in window]
    spans = segments(window, vectors)
    names = {*context.speakers, *(turn.speaker for turn in window)}
    speakers = frozenset(part for name in names for part in name.lower().split())
    return Draft(
        reads,
        gather(reads),
        spans,
        title_candidates(reads, spans, speakers),
        compared(reads, context),
    )


def _read(turn: Turn) -> Read:
    asks = turn.role == "user" or is_personal(turn.speaker)
    return Read(turn, prose(turn.text), asks)

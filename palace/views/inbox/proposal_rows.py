"""Proposals as rows of the inbox: before and after, word by word, with sources."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import Match, SequenceMatcher
from itertools import islice

from isolation.raw_sql import NO_NAMES, Part, columns_of, fetch_instances
from language.english.grammatical_person import to_second_person
from palace.knowledge.dreaming import After, after_of
from palace.knowledge.facts import Effect, effects_of
from palace.models import Fact, Palace, Proposal, ProposalFact, ProposalQuote
from palace.queries.facts import add_quotes, quotes_of_proposals
from palace.views.shared.palace_tags import path
from settings_app.row_tags import counted

_WORD = re.compile(r"\S+\s*")
# The most words and pairs of equal words that a comparison looks at, some 30 ms; it looks at many
# again and again. Beyond that only a common beginning and end count as unchanged.
MOST_LOOKS = 300_000
Kind, Status = Proposal.Kind, Proposal.Status
# The most quotes shown with a fact.
WORDS_SHOWN = 2
BY_RULES = "Loci, without a model"
_TITLES = {
    Kind.MERGE: "{facts} become one",
    Kind.REFINE: "Filed elsewhere",
    Kind.DROP: "Nothing worth keeping",
    Kind.OUTDATED: "Its time is over",
    Kind.CONTRADICTION: "The older one ends",
    Kind.UNSURE: "Is this so?",
    Kind.ANTI_PATTERN: "To be avoided from now on",
    Kind.PREFERENCE: "To be known from now on",
}
_NOTHING_AFTER = {
    Kind.DROP: "Nothing: it is not a fact any more; its history stays.",
    Kind.OUTDATED: "It ends: it was so, and is so no longer.",
    Kind.CONTRADICTION: "It ends when the other one began; the other one stays.",
}
_LINK: tuple[Part, ...] = ((ProposalFact, "l", NO_NAMES),)
_LINKS = (
    f"SELECT {columns_of(_LINK)} FROM palace_proposalfact l WHERE l.palace_id = %s"  # noqa: S608 - of the model.
    f" AND l.proposal_id = ANY(%s::bigint[]) AND l.role <> '{ProposalFact.Role.MADE}' ORDER BY l.id"
)
_WAS_BEFORE = "It was so before that: the other one was said later, and stays."


@dataclass(frozen=True, slots=True)
class Line:
    """A fact that a proposal is about.

    Attributes:
        text: The text when this was proposed, with deletions marked.
        stays: Whether it is only the reason and does not change.
    """

    fact: Fact
    text: list[Piece]
    stays: bool = False


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """
    Attributes:
        state: The status; stale if it can no longer be decided.
        lines: The facts before, sources first.
        after: The fact after, with new words marked; empty if no fact stays.
        category: The old and the new one, if they differ.
        tags: Added, removed and unchanged ones.
        quotes: The source messages, for a proposal without a fact.
        error: Why the last action failed.
        said: The unsure fact that is suggested; its messages are quoted.
        note: What else would be so.
    """

    proposal: Proposal
    state: str
    lines: list[Line]
    after: list[Piece]
    category: tuple[str, str] | None = None
    tags: list[tuple[str, str]] = field(default_factory=list)
    quotes: list[ProposalQuote] = field(default_factory=list)
    error: str = ""
    said: Fact | None = None
    note: str = ""

    @property
    def sources(self) -> list[Line]:
        return [line for line in self.lines if not line.stays]

    @property
    def title(self) -> str:
        return _TITLES[Kind(self.proposal.kind)].format(facts=counted(len(self.sources), "fact"))

    @property
    def text(self) -> str:
        """The statement that identifies it among others of its kind."""
        pieces = self.after or (self.lines[0].text if self.lines else [])
        return "".join(piece.text for piece in pieces)

    @property
    def why(self) -> str:
        return str(self.proposal.payload["why"])

    @property
    def nothing_after(self) -> str:
        return _NOTHING_AFTER.get(Kind(self.proposal.kind), "")

    @property
    def made_by(self) -> str:
        if self.proposal.payload["made_by"] == "rules":
            return BY_RULES
        detail = self.proposal.dream.detail if self.proposal.dream else {}
        return str(detail.get("model") or "a model")

    @property
    def can_be_undone(self) -> bool:
        return self.state in (Status.ACCEPTED, Status.REJECTED)

    @property
    def was_trusted(self) -> bool:
        return self.proposal.decided_by == "dream"


def proposal_rows(
    palace: Palace, proposals: Sequence[Proposal], *, error: str = "", are_waiting: bool = False
) -> list[ProposalRow]:
    """In the order given, in a constant number of queries.

    Args:
        are_waiting: All are known to wait; saves a query.
    """
    if not proposals:
        return []
    facts, quotes = _facts(palace, proposals), _quotes(palace, proposals)
    waiting = {one.pk for one in proposals} if are_waiting else _waiting(palace, proposals)
    effects = _effects(palace, [one for one in proposals if one.pk in waiting], facts)
    rows = []
    for one in proposals:
        state = str(Status.STALE) if _is_stale(one, waiting) else one.status
        about = facts[one.pk]
        if one.kind == Kind.UNSURE and about:
            rows.append(_unsure_row(one, state, about, effects.get(one.pk), error))
        else:
            rows.append(_row(one, state, about, quotes[one.pk], error))
    return rows


def _is_stale(proposal: Proposal, waiting: Collection[int]) -> bool:
    return proposal.status == Status.PROPOSED and proposal.pk not in waiting


def _waiting(palace: Palace, proposals: Iterable[Proposal]) -> set[int]:
    keys = [one.pk for one in proposals if one.status == Status.PROPOSED]
    rows = Proposal.objects.within(palace).waiting()
    return set(rows.filter(pk__in=keys).values_list("pk", flat=True)) if keys else set()


def _facts(
    palace: Palace, proposals: Sequence[Proposal]
) -> defaultdict[int, list[tuple[ProposalFact, Fact]]]:
    found: defaultdict[int, list[tuple[ProposalFact, Fact]]] = defaultdict(list)
    keys = [one.pk for one in proposals]
    links = [link for (link,) in fetch_instances(_LINKS, [palace.pk, keys], _LINK)]
    if not links:
        return found
    rows = Fact.objects.within(palace).filter(pk__in=[link.fact_id for link in links])
    rows = rows.select_related("subject", "opened_by__drawer")
    by_key = {fact.pk: fact for fact in rows}
    add_quotes(palace, by_key.values(), at_most=WORDS_SHOWN)
    for link in links:
        if link.fact_id in by_key:
            found[link.proposal_id].append((link, by_key[link.fact_id]))
    return found


def _effects(
    palace: Palace,
    proposals: Iterable[Proposal],
    facts: Mapping[int, Sequence[tuple[ProposalFact, Fact]]],
) -> dict[int, Effect]:
    """By proposal, what accepting a waiting unsure fact would change."""
    unsure = {
        one.pk: facts[one.pk][0][1]
        for one in proposals
        if one.kind == Kind.UNSURE and facts[one.pk]
    }
    found = effects_of(palace, list(unsure.values()))
    others = [each for one in found.values() for each in (one.ends, one.stays) if each]
    add_quotes(palace, others, at_most=WORDS_SHOWN)
    return {key: found[fact.pk] for key, fact in unsure.items()}


def _quotes(palace: Palace, proposals: Sequence[Proposal]) -> defaultdict[int, list[ProposalQuote]]:
    found: defaultdict[int, list[ProposalQuote]] = defaultdict(list)
    for quote in quotes_of_proposals(palace, [one.pk for one in proposals]):
        found[quote.proposal_id].append(quote)
    return found


def _row(
    proposal: Proposal,
    state: str,
    facts: Sequence[tuple[ProposalFact, Fact]],
    quotes: list[ProposalQuote],
    error: str,
) -> ProposalRow:
    sources = [fact for link, fact in facts if link.role == ProposalFact.Role.SOURCE]
    beside = [fact for link, fact in facts if link.role == ProposalFact.Role.BESIDE]
    after = after_of(proposal.payload)
    lines = [_source(fact, after) for fact in sources]
    lines += [_beside(fact) for fact in beside]
    return ProposalRow(
        proposal,
        state,
        lines,
        _after(sources, after),
        _category(sources, after),
        _tags(sources, after),
        quotes,
        error,
    )


def _unsure_row(
    proposal: Proposal,
    state: str,
    facts: Sequence[tuple[ProposalFact, Fact]],
    effect: Effect | None,
    error: str,
) -> ProposalRow:
    """An unsure fact: what it would end, or has ended, and what it says."""
    [said, *ended] = [fact for _, fact in facts]
    if effect and effect.ends:
        ended = [effect.ends]
    text = to_second_person(said.text)
    lines = [Line(fact, changes(to_second_person(fact.text), text)[0]) for fact in ended]
    after = changes(to_second_person(ended[0].text), text)[1] if ended else all_changed(text)
    stays = effect.stays if effect else None
    if stays is not None:
        lines.append(_beside(stays))
    note = _WAS_BEFORE if stays is not None else ""
    return ProposalRow(proposal, state, lines, after, error=error, said=said, note=note)


def _beside(fact: Fact) -> Line:
    return Line(fact, [Piece(to_second_person(fact.text), changed=False)], stays=True)


def _source(fact: Fact, after: After | None) -> Line:
    text = to_second_person(fact.text)
    after_text = to_second_person(after.text) if after else ""
    return Line(fact, changes(text, after_text)[0] if after else all_changed(text))


def _after(sources: Sequence[Fact], after: After | None) -> list[Piece]:
    """The fact after, compared with the most similar source."""
    if after is None:
        return []
    text = to_second_person(after.text)
    if not sources:
        return all_changed(text)
    like = max(sources, key=lambda fact: likeness(fact.text, after.text))
    return changes(to_second_person(like.text), text)[1]


def _category(sources: Sequence[Fact], after: After | None) -> tuple[str, str] | None:
    if after is None:
        return None
    before = list(dict.fromkeys(path(fact.category) for fact in sources if fact.category))
    now = path(after.category)
    return None if before == [now] or not (before or now) else (", ".join(before), now)


def _tags(sources: Sequence[Fact], after: After | None) -> list[tuple[str, str]]:
    """Each tag with `stays`, `comes` or `goes`; none if nothing changes."""
    before = list(dict.fromkeys(tag for fact in sources for tag in fact.tags))
    if after is None or set(before) == set(after.tags):
        return []
    now = [(tag, "stays" if tag in before else "comes") for tag in after.tags]
    return now + [(tag, "goes") for tag in before if tag not in after.tags]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words of both texts, or of one text only."""

    text: str
    changed: bool


def changes(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """The old text with deletions marked, and the new one with insertions marked.

    Joined, the pieces of either give its text to the byte.
    """
    before, after = _WORD.findall(old), _WORD.findall(new)
    gone: list[Piece] = [*_leading(old)]
    come: list[Piece] = [*_leading(new)]
    for same, start, end, new_start, new_end in _stretches(_stripped(before), _stripped(after)):
        gone += _pieces(before[start:end], changed=not same)
        come += _pieces(after[new_start:new_end], changed=not same)
    return gone, come


def likeness(one: str, other: str) -> float:
    """The similarity of two texts, 0 to 1; for long texts regardless of word order."""
    matcher = _Matcher(_stripped(_WORD.findall(one)), _stripped(_WORD.findall(other)))
    try:
        return matcher.ratio()
    except _TooMuchWork:
        return matcher.quick_ratio()


class _TooMuchWork(Exception):
    """The texts have too many words in common, in too many places."""


class _Matcher(SequenceMatcher[str]):
    """Compares words, with at most `MOST_LOOKS` looks at them.

    Raises:
        _TooMuchWork: from `ratio` and `get_opcodes`.
    """

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._old, self._places = old, Counter(new)
        self._left = MOST_LOOKS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        words = islice(self._old, alo, ahi)
        self._left -= sum(1 + self._places[word] for word in words)
        if self._left < 0:
            raise _TooMuchWork
        return super().find_longest_match(alo, ahi, blo, bhi)


def _stretches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """(is the same, span of the old words, span of the new words) of each stretch."""
    with suppress(_TooMuchWork):
        for kind, start, end, new_start, new_end in _Matcher(old, new).get_opcodes():
            yield kind == "equal", start, end, new_start, new_end
        return
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    most -= first
    last = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    yield True, 0, first, 0, first
    yield False, first, len(old) - last, first, len(new) - last
    yield True, len(old) - last, len(old), len(new) - last, len(new)


def all_changed(text: str) -> list[Piece]:
    return [Piece(text, changed=True)]


def _stripped(words: Iterable[str]) -> list[str]:
    return [word.rstrip() for word in words]


def _leading(text: str) -> Iterator[Piece]:
    space = text[: len(text) - len(text.lstrip())]
    if space:
        yield Piece(space, changed=False)


def _pieces(words: Sequence[str], *, changed: bool) -> Iterator[Piece]:
    """Pieces of a text; space after the last word is not part of a change."""
    text = "".join(words)
    kept = text.rstrip()
    if kept:
        yield Piece(kept, changed)
    if kept != text:
        yield Piece(text[len(kept) :], changed=False)

"""A recall's trace as rows: hits, rejected candidates by reason, and the parsed question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import chain, groupby
from typing import Any
from uuid import UUID

from django.utils.dateformat import format as format_date

from language.analyzer import all_readings, analyze, language_of
from palace.models import Drawer, ExpectedDrawer, RecallCase, RecollectionTrace
from palace.queries.places import PREVIEW_LENGTH, listed, shown_drawers, with_preview
from palace.recall import describe_move
from palace.recall.evaluation import case_of
from palace.recall.trace import (
    KNOWN,
    NO_ROOM,
    PUT_LOWER,
    RANKED_LOWER,
    REPEATS,
    SHOWN,
    STAGES_GIVEN,
    TOO_FAR,
    UNINFORMATIVE_HIT,
)
from palace.views.score_explanations import Scale, ScoreAccount
from palace.views.search import WORD, snippet_of

# The reasons for a cut: a heading and an explanation.
CUTS = {
    KNOWN: (
        "Already in the conversation",
        "The model could see these already, so they were left out.",
    ),
    REPEATS: ("The same question", "They ask what was asked here, and are no answer."),
    PUT_LOWER: (
        "Put lower by a model",
        "Their scores would have been enough; the reranking model preferred others.",
    ),
    RANKED_LOWER: ("Ranked lower", "Related to the question, but others fitted better."),
    TOO_FAR: (
        "Too far from the question",
        "They share no word with it, are not close in meaning, and stand beside nothing that is.",
    ),
}
ASKS = {
    "user": "what you did, said or have",
    "assistant": "what the assistant said",
    "advice": "advice, where your standing wishes count",
    "survey": "several things together: a count, a list, a summary",
    "asked": "what was asked before",
}
WHEN = {
    "recent": "what holds now, or came last",
    "first": "what came first",
    "last": "the last time before this",
}
# A period that starts this early has no beginning.
EVER = 1900
# Hits shown at once; the others are folded.
SHOWN_AT_ONCE = 5
# Candidates named for each reason why they were cut; the others are counted.
CUT_SHOWN = 10
UNKNOWN_FATE = "It is not in this record: it ranked lower, or was no candidate."


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A drawer in a trace.

    Attributes:
        place: From 1: a hit's rank, else the rank of its score; None without a score.
        drawer: None once it is purged.
        snippet: As `snippet_of`; empty if the drawer is in the trash or purged.
        cut: Why it was cut, a hit only from the context block; else empty.
        note: A sentence on what else happened to it.
        is_expected: The owner marked it as expected.
    """

    place: int | None
    pointer: str
    drawer: Drawer | None
    snippet: tuple[tuple[str, bool], ...]
    url: str
    account: ScoreAccount
    cut: str
    note: str
    is_expected: bool

    @property
    def is_kept(self) -> bool:
        """Whether its words can be shown."""
        return self.drawer is not None and self.drawer.trashed_at is None

    @property
    def is_hit(self) -> bool:
        return self.cut in ("", NO_ROOM, SHOWN, UNINFORMATIVE_HIT)

    @property
    def is_shown_before(self) -> bool:
        """Whether it was not injected because it was in the prompt already."""
        return self.cut == SHOWN


@dataclass(frozen=True, slots=True)
class CutGroup:
    """Candidates cut for one reason.

    Attributes:
        total: Their number; `rows` has the best of them.
    """

    title: str
    why: str
    rows: list[TraceRow]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True)
class Fate:
    """The outcome for an expected drawer in this recall, in a sentence."""

    drawer: Drawer
    sentence: str
    came: bool


@dataclass(frozen=True, slots=True)
class TraceRows:
    hits: list[TraceRow]
    cuts: list[CutGroup]
    fates: list[Fate]

    @property
    def first(self) -> list[TraceRow]:
        return self.hits[:SHOWN_AT_ONCE]

    @property
    def others(self) -> list[TraceRow]:
        return self.hits[SHOWN_AT_ONCE:]

    @property
    def accounts(self) -> list[ScoreAccount]:
        cut = chain.from_iterable(group.rows for group in self.cuts)
        return [row.account for row in chain(self.hits, cut)]


def rows_of(trace: RecollectionTrace) -> TraceRows:
    case = case_of(trace) if trace.query else None
    expected = _expected(case) if case else []
    rows = _Rows(trace, {drawer.pk for drawer in expected})
    hits, cut = list(rows.hits()), list(rows.cut())
    fates = [_fate(drawer, [*hits, *cut]) for drawer in expected]
    return TraceRows(hits, _groups(cut, rows.cut_totals), fates)


class _Rows:
    def __init__(self, trace: RecollectionTrace, expected: set[int]) -> None:
        candidates = trace.cut()
        self._trace, self._expected = trace, expected
        self._cut_ones = list(_cut_rows(candidates, expected))
        stored = Counter(each["cut"] for each in candidates)
        counted: Mapping[str, int] = trace.figures.get("cut", {})
        self.cut_totals = {why: max(counted.get(why, 0), stored[why]) for why in stored}
        self._terms = all_readings(trace.query)
        self._scale = Scale(
            (float(each["score"]), each["signals"]) for each in (*trace.hits, *candidates)
        )
        uuids = [UUID(hit["drawer"]) for hit in trace.hits]
        hit = shown_drawers(trace.palace, "uuid", uuids, whole=True)
        self._hit = {str(uuid): drawer for uuid, drawer in hit.items()}
        keys = [candidate["drawer"] for candidate in self._cut_ones]
        self._cut = shown_drawers(trace.palace, "id", keys)

    def hits(self) -> Iterator[TraceRow]:
        for place, hit in enumerate(self._trace.hits, start=1):
            drawer = self._hit.get(hit["drawer"])
            text = drawer.text if drawer else ""
            start, end = hit.get("passage", (0, len(text)))
            note = _hit_note(hit, place)
            url = f"{drawer.get_absolute_url()}?passage={start}-{end}" if drawer else ""
            yield self._row(hit, place, drawer, (text, (start, end)), url, note)

    def cut(self) -> Iterator[TraceRow]:
        for candidate in self._cut_ones:
            drawer = self._cut.get(candidate["drawer"])
            text = drawer.preview if drawer else ""
            url = drawer.get_absolute_url() if drawer else ""
            place = candidate.get("place")
            yield self._row(candidate, place, drawer, (text, (0, len(text))), url, "")

    def _row(
        self,
        traced: Mapping[str, Any],
        place: int | None,
        drawer: Drawer | None,
        words: tuple[str, tuple[int, int]],
        url: str,
        note: str,
    ) -> TraceRow:
        is_kept = drawer is not None and drawer.trashed_at is None
        return TraceRow(
            place=place,
            pointer=str(drawer.pointer) if drawer else traced.get("pointer", ""),
            drawer=drawer,
            snippet=self._snippet(*words) if is_kept else (),
            url=url,
            account=self._scale.account(float(traced["score"]), traced["signals"]),
            cut=traced.get("cut", ""),
            note=note,
            is_expected=drawer is not None and drawer.pk in self._expected,
        )

    def _snippet(self, text: str, passage: tuple[int, int]) -> tuple[tuple[str, bool], ...]:
        snippet = snippet_of(text, passage, self._terms)
        ends_early = len(text) == PREVIEW_LENGTH == passage[1]
        return (*snippet, ("\u00a0…", False)) if ends_early else snippet


def _hit_note(hit: Mapping[str, Any], place: int) -> str:
    notes = []
    if since := hit.get("outdated_since"):
        notes.append(f"No longer so since {datetime.fromisoformat(since):%B %Y}.")
    if "place_before" in hit:
        notes.append(describe_move(hit["place_before"], place))
    if hit.get("shortened"):
        notes.append("The block holds only the stretch that is closest to the question.")
    return " ".join(notes)


def _cut_rows(
    candidates: Iterable[dict[str, Any]], expected: Collection[int]
) -> Iterator[dict[str, Any]]:
    """Those that are shown, the first of each reason, and the expected ones."""
    seen: Counter[str] = Counter()
    for each in candidates:
        seen[each["cut"]] += 1
        if seen[each["cut"]] <= CUT_SHOWN or each["drawer"] in expected:
            yield each


def _groups(cut: Iterable[TraceRow], totals: Mapping[str, int]) -> list[CutGroup]:
    order = list(CUTS)
    by_reason = sorted(cut, key=lambda row: order.index(row.cut) if row.cut in CUTS else len(order))
    groups = []
    for reason, group in groupby(by_reason, key=lambda row: row.cut):
        rows = list(group)
        title, why = CUTS.get(reason, (reason.capitalize(), ""))
        groups.append(CutGroup(title, why, rows[:CUT_SHOWN], totals[reason]))
    return groups


def _expected(case: RecallCase) -> list[Drawer]:
    expected = ExpectedDrawer.objects.filter(palace=case.palace_id, case=case)
    drawers = Drawer.objects.filter(palace=case.palace_id, pk__in=expected.values("drawer"))
    return list(with_preview(listed(drawers)).order_by("pk"))


def _fate(drawer: Drawer, rows: Sequence[TraceRow]) -> Fate:
    row = next((row for row in rows if row.drawer and row.drawer.pk == drawer.pk), None)
    if row is None:
        return Fate(drawer, UNKNOWN_FATE, came=False)
    if row.is_hit:
        room = f", but {row.cut}" if row.cut else ""
        return Fate(drawer, f"It came in place {row.place}{room}.", came=True)
    sentence = f"It was cut: {row.cut}"
    if row.place:
        sentence += f", in place {row.place} by its score"
    if row.cut == RANKED_LOWER:
        last = min(each.account.sum.hundredths for each in rows if each.is_hit)
        sentence += f", {(last - row.account.sum.hundredths) / 100:.2f} below the last one shown"
    return Fate(drawer, f"{sentence}.", came=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The parsed question in words; missing parts are empty."""

    words: list[str]
    names: list[str]
    quoted: list[str]
    asks: list[str]
    periods: list[tuple[str, str]]
    as_of: datetime | None
    is_known: bool
    by_meaning: bool
    rewritten: list[str]
    stages: list[str]


def reading(trace: RecollectionTrace) -> Reading:
    read: Mapping[str, Any] = trace.reading
    return Reading(
        words=_as_written(trace.query, read.get("terms", [])),
        names=read.get("names", []),
        quoted=read.get("quoted", []),
        asks=[ASKS.get(kind, kind.replace("_", " ")) for kind in read.get("asks", ())]
        + [WHEN[kind] for kind in read.get("when", ()) if kind in WHEN],
        periods=[
            (
                p["text"],
                _stretch(datetime.fromisoformat(p["start"]), datetime.fromisoformat(p["end"])),
            )
            for p in read.get("periods", ())
        ],
        as_of=datetime.fromisoformat(read["as_of"]) if "as_of" in read else None,
        is_known=bool(read),
        by_meaning=bool(read.get("by_meaning")),
        rewritten=read.get("rewritten", []),
        stages=[_stage(each) for each in read.get(STAGES_GIVEN, ())],
    )


def _stage(given: Mapping[str, Any]) -> str:
    """A stage as the caller gave it: "graph, hops 2", "floor off"."""
    name = given["stage"] if given.get("on", True) else f"{given['stage']} off"
    tunables = (f"{each} {value}" for each, value in given.items() if each not in ("stage", "on"))
    return ", ".join((name, *tunables)).replace("_", " ")


def _as_written(question: str, terms: Sequence[str]) -> list[str]:
    """The terms as the question spells them; a term it does not contain stays as it is."""
    written: dict[str, str] = {}
    language = language_of(question)
    for word in WORD.findall(question):
        for term in analyze(word, language):
            written.setdefault(term, word.lower())
    return list(dict.fromkeys(written.get(term, term) for term in terms))


def _stretch(start: datetime, end: datetime) -> str:
    """From `start` up to but excluding `end`; in days if both are whole days."""
    if start.time() == end.time() == time():
        end -= timedelta(days=1)
        first, last = format_date(start, "D j M Y"), format_date(end, "D j M Y")
    else:
        first, last = format_date(start, "D j M Y, H:i"), format_date(end, "D j M Y, H:i")
    if start.year <= EVER:
        return f"up to {last}"
    return first if first == last else f"{first} – {last}"


def floor_sentence(trace: RecollectionTrace) -> str:
    """The similarity of the best candidate, if the floor rejected all; else empty."""
    floor = trace.figures.get("floor") or {}
    if not floor.get("refused"):
        return ""
    return (
        f"The closest drawer has a cosine of {floor['cosine']:.2f} with it; one drawer holds at "
        f"most {floor['words']:.0%} of its words, and all drawers together hold "
        f"{floor['known']:.0%}, the rare ones counted more. Together that is "
        f"{floor['log_odds']:.1f}; {floor['least']:.1f} is needed."
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of retrieval, and the number of drawers that reached it."""

    number: int
    what: str


def stages(trace: RecollectionTrace) -> list[Stage]:
    """From candidates to injected drawers; empty for traces without figures."""
    figures = trace.figures
    if not figures:
        return []
    cut: Mapping[str, int] = figures["cut"]
    fitting = figures["looked_at"] - cut.get(TOO_FAR, 0) - cut.get(KNOWN, 0)
    looked = Stage(figures["looked_at"], "looked at")
    rest = [Stage(len(trace.hits), "shown"), Stage(figures["given"], "in the block for a model")]
    if figures.get("carried"):
        rest.append(Stage(figures["carried"], "there still from earlier"))
    return [looked, Stage(fitting, "candidates"), *rest]

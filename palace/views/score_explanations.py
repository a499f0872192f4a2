"""Scores explained: the steps of one, and why a drawer somebody expected is not among the hits.

A form beside each drawer says that it is expected.

Each signal's share of a score begins where the one before it ended. The expected drawer is shown
beside the drawers that beat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate
from uuid import UUID

from django.utils.dateformat import format as format_date
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime

from language.errors import PalaceError
from palace.models import Drawer, Entity, RecollectionTrace, Wing
from palace.recall import (
    NOT_CHOSEN_FROM,
    NOT_SEARCHABLE,
    Hit,
    Narrowing,
    RecallRequest,
    Standing,
    standing_of,
)
from palace.recall.evaluation import owners_time
from palace.recall.recipes import RECIPES, SIGNALS, all_shares, label_of
from palace.recall.trace import NARROWED_TO, STAGES_GIVEN, TOO_FAR
from palace.views.search import speaker_name
from palace.views.shared.palace_tags import icon, source_name
from settings_app.fast_reverse import address_of

# The signals that the sentence names, and the least difference, in the score's unit, of each.
NAMED, LEAST = 2, 0.05
WHY = {
    TOO_FAR: (
        "It is too far from the question: it shares no word with it, is not close in meaning, "
        "and stands beside nothing that is."
    ),
    NOT_CHOSEN_FROM: "The filters of this search leave it out.",
    NOT_SEARCHABLE: "It is not searchable yet; new messages are filed first and mined later.",
}
# What a larger share of a signal says of what beat the drawer.
BEATS = {
    "meaning": "is closer in meaning",
    "words": "has more of the words",
    "exchange": "stands beside messages that fit better",
    "agreement": "fits by meaning and by words at once",
    "room": "belongs to a conversation that is more about this",
    "speaker": "was said by the one asked about",
    "time": "fits the time better",
    "preference": "states a wish or taste",
    "statement": "says more the kind of thing that is asked",
    "length": "has more to say",
}
# Shares and their sums are displayed in hundredths.
SHOWN = 100


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal's share of the score: of the drawer, of the first that came, of the last."""

    label: str
    shares: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    Attributes:
        sentence: The outcome and its reason.
        others: The first that came and the last, with their places; none where nothing came.
        rows: The signals, the greatest difference first; the last row is the score.
    """

    drawer: Drawer
    sentence: str
    others: tuple[tuple[int, Hit], ...] = ()
    rows: list[SignalRow] = field(default_factory=list)


def compare(trace: RecollectionTrace, drawer: Drawer) -> Comparison:
    """Ask the recall's question again, and see how the drawer fares."""
    if drawer.trashed_at:
        return Comparison(drawer, "It is in the trash, where nothing can find it.")
    try:
        rewritten = trace.reading.get("rewritten", ())
        standing = standing_of(trace.palace, _request(trace), drawer, rewritten)
    except PalaceError as error:
        return Comparison(drawer, str(error))
    others = _others(standing, drawer)
    rows = _rows(standing, [hit for _, hit in others]) if standing.signals else []
    return Comparison(drawer, _sentence(standing, others), others, rows)


def _request(trace: RecollectionTrace) -> RecallRequest:
    return RecallRequest(
        trace.query,
        top_k=max(len(trace.hits), 1),
        now=owners_time(trace.palace, trace.now),
        recipe=trace.reading.get(STAGES_GIVEN)
        or (trace.recipe if trace.recipe in RECIPES else None),
        narrowing=Narrowing.from_record(trace.reading.get(NARROWED_TO, {})),
    )


def conditions(trace: RecollectionTrace) -> list[str]:
    """The filters of the recall, in words."""
    narrowing = Narrowing.from_record(trace.reading.get(NARROWED_TO, {}))
    if not narrowing:
        return []
    wings = Wing.objects.within(trace.palace)
    wing = wings.filter(uuid=narrowing.wing).first() if narrowing.wing else None
    mine = Entity.objects.filter(palace=trace.palace)
    person = mine.filter(uuid=narrowing.person).first() if narrowing.person else None
    day = "j F Y"
    words = (
        narrowing.wing and f"in {wing.name if wing else 'a wing that is gone'}",
        narrowing.person and f"mentions {person.display_name if person else 'somebody gone'}",
        narrowing.speaker and f"said by {speaker_name(narrowing.speaker)}",
        narrowing.source and f"from {source_name(narrowing.source)}",
        narrowing.since and f"since {format_date(localtime(narrowing.since), day)}",
        narrowing.until and f"until {format_date(localtime(narrowing.until), day)}",
    )
    return [each for each in words if each]


def _others(standing: Standing, drawer: Drawer) -> tuple[tuple[int, Hit], ...]:
    """The first that came and the last, without the drawer itself."""
    placed = [(n, h) for n, h in enumerate(standing.hits, 1) if h.drawer.pk != drawer.pk]
    return tuple(placed[:1] + placed[1:][-1:])


def _sentence(standing: Standing, others: Sequence[tuple[int, Hit]]) -> str:
    if standing.why:
        return WHY[standing.why]
    if standing.place == 1:
        return "It comes first."
    verb = "It comes" if standing.is_hit else "It would come"
    placed = f"{verb} in place {standing.place}"
    if not others:
        return f"{placed}."
    beaten_by = _beaten_by(standing.signals, others[0][1].signals)
    return f"{placed}: what came first {beaten_by}." if beaten_by else f"{placed}."


def _beaten_by(own: Mapping[str, float], other: Mapping[str, float]) -> str:
    """How the other is better, by the signals with the greatest differences; may be empty."""
    ahead = {name: other.get(name, 0.0) - own.get(name, 0.0) for name in BEATS}
    most = sorted((name for name in BEATS if ahead[name] >= LEAST), key=lambda n: -ahead[n])
    return " and ".join(BEATS[name] for name in most[:NAMED])


def _rows(standing: Standing, others: Sequence[Hit]) -> list[SignalRow]:
    scored = [(standing.score, standing.signals), *((hit.score, hit.signals) for hit in others)]
    shares = [all_shares(score, signals) for score, signals in scored]
    names = list(dict.fromkeys(name for each in shares for name in each))

    def difference(name: str) -> float:
        values = [each.get(name, 0.0) for each in shares]
        return max(values) - min(values)

    rows = [
        SignalRow(label_of(name), _figures([each.get(name, 0.0) for each in shares]))
        for name in sorted(names, key=difference, reverse=True)
    ]
    shown = [row for row in rows if set(row.shares) != {"0.00"}]
    return [*shown, SignalRow("Score", _figures([score for score, _ in scored]))]


def _figures(values: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−") for value in values)


_ROW = (
    '<tr{}><th scope="row">{}</th><td class="step">'
    '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
    '<path class="zero" d="M{} -7V17"></path>'
    '<rect x="{}" y="1" width="{}" height="8"></rect></svg></td>'
    '<td class="number">{}</td></tr>\n'
)
_HEAD = (
    '<thead class="unseen">\n<tr>\n<th scope="col">Signal</th>\n'
    '<th scope="col">Share of the score</th>\n</tr>\n</thead>\n'
)


@dataclass(frozen=True, slots=True)
class Step:
    """One signal's share, drawn from where the one before it ended.

    Attributes:
        hundredths: The share as displayed.
        start: The left edge of its bar, from 0 to 100; likewise `width`.
    """

    label: str
    hundredths: int
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.hundredths / SHOWN:+.2f}".replace("-", "−")

    @property
    def plain_figure(self) -> str:
        """Without the sign of what is added."""
        return self.figure.removeprefix("+")

    @property
    def speaks_against(self) -> bool:
        return self.hundredths < 0


@dataclass(frozen=True, slots=True)
class ScoreAccount:
    """The steps to a score: the displayed figures add up to it.

    Attributes:
        zero: The position of zero, from 0 to 100.
        sum: The last step, from nothing to the score.
    """

    steps: tuple[Step, ...]
    zero: float
    sum: Step

    def table(self, of: str) -> SafeString:
        """The steps as rows of a table, in one piece: a page has hundreds.

        Args:
            of: The drawer's pointer.
        """
        total = self.sum
        return mark_safe(  # noqa: S308 - labels are escaped.
            '<table class="account">\n<caption class="unseen">'
            f"How the score of {escape(of)} comes about</caption>\n{_HEAD}<tbody>\n"
            f"{''.join(map(self._row, self.steps))}</tbody>\n<tfoot>\n"
            '<tr>\n<th scope="row">Score</th>\n<td class="step">'
            '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<path class="zero" d="M{self.zero} -7V11"></path>'
            f'<rect x="{total.start}" y="1" width="{total.width}" height="8"></rect></svg></td>\n'
            f'<td class="number">{total.plain_figure}</td>\n</tr>\n</tfoot>\n</table>\n'
        )

    def _row(self, step: Step) -> str:
        against = ' class="against"' if step.speaks_against else ""
        label = escape(step.label)
        return _ROW.format(against, label, self.zero, step.start, step.width, step.figure)


class Scale:
    """The scale from the lowest to the highest partial sum of these scores."""

    def __init__(self, scored: Iterable[tuple[float, Mapping[str, float]]]) -> None:
        reached = {0}
        for score, signals in scored:
            reached.update(accumulate(share for _, share in _in_order(score, signals)))
        self._low = min(reached)
        self._width = (max(reached) - self._low) or 1

    def account(self, score: float, signals: Mapping[str, float]) -> ScoreAccount:
        shares = _in_order(score, signals)
        ends = [0, *accumulate(share for _, share in shares)]
        steps = (
            self._step(label_of(name), start, share)
            for (name, share), start in zip(shares, ends, strict=False)
        )
        return ScoreAccount(tuple(steps), self._at(0), self._step("Score", 0, ends[-1]))

    def _step(self, label: str, start: int, share: int) -> Step:
        left = self._at(min(start, start + share))
        return Step(label, share, left, round(abs(share) * 100 / self._width, 2))

    def _at(self, hundredths: int) -> float:
        return round((hundredths - self._low) * 100 / self._width, 2)


def explained(accounts: Iterable[ScoreAccount]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a step somewhere."""
    drawn = {step.label for account in accounts for step in account.steps}
    return [words for words in SIGNALS.values() if words[0] in drawn]


def _in_order(score: float, signals: Mapping[str, float]) -> list[tuple[str, int]]:
    """The shares in hundredths, the largest first; their sum is the score."""
    known = all_shares(score, signals)
    shares = _rounded([(name, share * SHOWN) for name, share in known.items()], score * SHOWN)
    return sorted(((n, s) for n, s in shares if s), key=lambda each: -each[1])


def _rounded(shares: Sequence[tuple[str, float]], total: float) -> list[tuple[str, int]]:
    """Round to whole numbers that add up to the rounded total; the largest remainders round up."""
    whole = [(name, int(share // 1)) for name, share in shares]
    missing = round(total) - sum(share for _, share in whole)
    by_rest = sorted(range(len(shares)), key=lambda i: -(shares[i][1] % 1))
    up = set(by_rest[: max(missing, 0)])
    return [(name, share + (i in up)) for i, (name, share) in enumerate(whole)]


@dataclass(frozen=True, slots=True)
class ExpectForm:
    """Says that a drawer is expected for the question of a recall, or takes that back.

    Attributes:
        trace: The recall's id.
        token: Against forged requests.
    """

    trace: UUID
    token: str
    refusal: str = ""

    @property
    def address(self) -> str:
        return address_of("recall_detail", self.trace)

    def html(self, drawer: Drawer, *, is_expected: bool, is_hit: bool) -> SafeString:
        what = "is right" if is_hit else "should have been found"
        if is_expected:
            said = "Right" if is_hit else "Should have been found"
            button = (
                '<input type="hidden" name="take_back" value="1">\n'
                f'<span class="expected">{icon("check")}<span>{said}, saved</span></span>\n'
                f'<button class="plain" id="expect-{drawer.uuid}" type="submit">Take back'
                f'<span class="unseen"> that {drawer.pointer} {what}</span></button>'
            )
        else:
            said = "This is right" if is_hit else "Should have been found"
            button = (
                f'<button class="quiet" id="expect-{drawer.uuid}" type="submit">{said}'
                f'<span class="unseen">: {drawer.pointer}</span></button>'
            )
        error = ""
        if self.refusal:
            error = f'\n<p class="error" role="alert">{escape(self.refusal)}</p>'
        return mark_safe(  # noqa: S308 - its parts are escaped.
            f'<form class="expect" method="post" action="{self.address}" hx-post="{self.address}"'
            ' hx-target="this" hx-swap="outerHTML">\n'
            f'<input type="hidden" name="csrfmiddlewaretoken" value="{self.token}">\n'
            f'<input type="hidden" name="drawer" value="{drawer.uuid}">\n{button}{error}\n</form>\n'
        )

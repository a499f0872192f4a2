"""Why not this one: a drawer somebody expected, beside the drawers that beat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.dateformat import format as format_date
from django.utils.timezone import localtime

from palace.errors import PalaceError
from palace.models import Drawer, Entity, RecollectionTrace, Wing
from palace.queries.facts import display_name
from palace.queries.signals import all_shares, label_of
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
from palace.recall.recipes import RECIPES
from palace.recall.trace import NARROWED_TO, TOO_FAR
from palace.templatetags.palace_tags import source_name
from palace.views.search import speaker_name

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
        standing = standing_of(trace.palace, _request(trace), drawer)
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
        recipe=trace.recipe if trace.recipe in RECIPES else None,
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
        narrowing.person and f"mentions {display_name(person) if person else 'somebody gone'}",
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

"""Render charts as SVG text, without libraries or database.

Each has a title and a text alternative, prints its values, distinguishes series
by position, outline or shape as well as by colour, and has its own background: if a
page's theme differs from the system's, text would otherwise be unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, MARGIN = 748, 24
# Below the title and its line of explanation.
TOP = 78

STYLE = """
.paper { fill: #fdfefc; stroke: #d3d9d3 }
text { fill: #1b2320; font: 14px ui-sans-serif, system-ui, -apple-system, "Segoe UI",
  "Liberation Sans", sans-serif }
.title { font-size: 18px; font-weight: 600 }
.head, .ours { font-weight: 600 }
.soft { fill: #525e58; font-size: 13px }
.value { font-variant-numeric: tabular-nums }
.end { text-anchor: end }
.middle { text-anchor: middle }
.halo { stroke: #fdfefc; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round }
.grid { stroke: #d3d9d3 }
.axis { stroke: #7d8983 }
.bar { fill: #2f7a64; stroke: #2f7a64 }
.other { fill: #e2e7e2; stroke: #7d8983 }
.against { fill: #fdfefc; stroke: #9a6412; stroke-width: 1.5 }
.under { stroke: #fdfefc; stroke-width: 4 }
.whisker { stroke: #1b2320; stroke-width: 1.5 }
.line { fill: none; stroke: #2f7a64; stroke-width: 2.5 }
.limit, .dotted { fill: none; stroke: #76520f; stroke-width: 1.5; stroke-dasharray: 7 4 }
.dotted { stroke-width: 2; stroke-dasharray: 2 4 }
.dot { fill: #2f7a64 }
.square { fill: #fdfefc; stroke: #76520f; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  .paper { fill: #1a211e; stroke: #2c3632 }
  text { fill: #e6ebe7 }
  .soft { fill: #a5b1ab }
  .halo { stroke: #1a211e }
  .grid { stroke: #2c3632 }
  .axis { stroke: #73807a }
  .bar { fill: #62b597; stroke: #62b597 }
  .other { fill: #323d38; stroke: #73807a }
  .against { fill: #1a211e; stroke: #d39b45 }
  .under { stroke: #1a211e }
  .whisker { stroke: #e6ebe7 }
  .line { stroke: #62b597 }
  .limit, .dotted { stroke: #dcb977 }
  .dot { fill: #62b597 }
  .square { fill: #1a211e; stroke: #dcb977 }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """
    Attributes:
        value: From 0 to 1, as are the ends of the interval.
        ours: Drawn filled; others are outlined.
    """

    label: str
    value: float
    interval: tuple[float, float]
    ours: bool


@dataclass(frozen=True, slots=True)
class Speed:
    """Of recall in a palace of `drawers`; milliseconds.

    Attributes:
        bare: Brute-force search over the same vectors.
        embedding: Embedding the question alone.
    """

    drawers: int
    p50: float
    p95: float
    bare: float
    embedding: float


def fraction(value: float) -> str:
    """Three decimals without a leading zero: `.814`, `1.000`."""
    return f"{value:.3f}".removeprefix("0")


def milliseconds(value: float) -> str:
    """Two significant digits: `0.02`, `8.4`, `106`."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def points(value: float) -> str:
    """Percentage points with a sign as wide as a digit: `+2.1`, `−0.3`."""
    return f"{100 * value:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} class="{kind}"/>'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="2" class="{kind}"/>'


def _chart(title: str, said: str, more: str, height: float, parts: Iterator[str]) -> str:
    """
    Args:
        said: The subtitle.
        more: All values as text, for screen readers.
    """
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(f"{said} {more}")}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8" class="paper"/>',
        _text(MARGIN, 36, title, "title"),
        _text(MARGIN, 58, said, "soft"),
        *parts,
        "</svg>",
    ]
    return "\n".join(body) + "\n"


ROW, HEAD, LABEL, VALUE = 26, 36, 140, 58
PANEL = (WIDTH - 3 * MARGIN - 12) / 2


def beside_peers(panels: Mapping[str, Sequence[Bar]]) -> str:
    """Bars of each system, a panel a metric, two panels a row; each from 0 to 1."""
    rows = math.ceil(len(panels) / 2)
    deep = HEAD + ROW * max(len(bars) for bars in panels.values()) + 14

    def parts() -> Iterator[str]:
        for place, (name, bars) in enumerate(panels.items()):
            down, across = divmod(place, 2)
            yield from _panel(
                MARGIN + across * (PANEL + MARGIN + 12), TOP + down * deep, name, bars
            )

    description = ". ".join(
        f"{name}: " + ", ".join(f"{bar.label} {fraction(bar.value)}" for bar in bars)
        for name, bars in panels.items()
    )
    return _chart(
        "The same questions, the same embedding model",
        "Share of what was looked for that is among the first k; lines are 95 % intervals.",
        f"{description}.",
        TOP + rows * deep + 8,
        parts(),
    )


def _panel(x: float, y: float, name: str, bars: Sequence[Bar]) -> Iterator[str]:
    start, full = x + LABEL, PANEL - LABEL - VALUE
    yield _text(x, y + 20, name, "head")
    for place, bar in enumerate(bars):
        top = y + HEAD + place * ROW
        middle, kind = top + 9, "ours" if bar.ours else ""
        yield _text(start - 8, middle + 5, bar.label, f"end {kind}".strip())
        yield _rect(start, top, full * bar.value, 18, "bar" if bar.ours else "other")
        low, high = (start + full * end for end in bar.interval)
        for drawn in ("under", "whisker") if low < high else ():
            yield _line(low, middle, high, middle, drawn)
            yield from (_line(end, middle - 4, end, middle + 4, drawn) for end in (low, high))
        yield _text(x + PANEL, middle + 5, fraction(bar.value), f"value end {kind}".strip())
    below = y + HEAD + len(bars) * ROW - 6
    yield _line(start, y + HEAD - 4, start, below, "axis")


NAMES, SPACE, GIVEN = 120, 16, 54


def what_signals_give(columns: Mapping[tuple[str, str], Mapping[str, float]]) -> str:
    """Bars to the right for losses without a signal, to the left for gains.

    Args:
        columns: By data set and metric, of each signal how much lower the metric is without it;
            in parts of one. All are drawn to one scale.
    """
    names = by_what_they_give(columns)
    wide = (WIDTH - 2 * MARGIN - NAMES) / len(columns)
    values = [0.0, *(value for column in columns.values() for value in column.values())]
    lowest, highest = min(values), max(values)
    scale = (wide - SPACE - GIVEN) / max(highest - lowest, 0.001)
    first = TOP + HEAD + 14

    def parts() -> Iterator[str]:
        for place, name in enumerate(names):
            yield _text(MARGIN + NAMES - 12, first + place * ROW + 14, name, "end")
        for across, (head, column) in enumerate(columns.items()):
            x = MARGIN + NAMES + across * wide
            yield _text(x, TOP + 16, head[0], "head")
            yield _text(x, TOP + 34, head[1], "soft")
            yield from _column(x - lowest * scale, first, scale, [column[name] for name in names])

    description = ". ".join(
        f"{', '.join(head)}: " + ", ".join(f"{name} {points(column[name])}" for name in names)
        for head, column in columns.items()
    )
    return _chart(
        "What each signal gives",
        "Points of a hundred that are lost without it; an empty bar to the left is a gain.",
        f"{description}.",
        first + len(names) * ROW + 16,
        parts(),
    )


def by_what_they_give(columns: Mapping[tuple[str, str], Mapping[str, float]]) -> list[str]:
    """The signals, by total contribution, largest first."""
    total: dict[str, float] = {}
    for column in columns.values():
        for name, value in column.items():
            total[name] = total.get(name, 0.0) + value
    return sorted(total, key=lambda name: -total[name])


def _column(zero: float, first: float, scale: float, values: Sequence[float]) -> Iterator[str]:
    for place, value in enumerate(values):
        top, length = first + place * ROW, abs(value) * scale
        if length >= 0.5:
            yield _rect(min(zero, zero + value * scale), top, length, 18, _sign(value))
        yield _text(max(zero, zero + value * scale) + 6, top + 14, points(value), "value")
    yield _line(zero, first - 4, zero, first + len(values) * ROW - 4, "axis")


def _sign(value: float) -> str:
    return "bar" if value > 0 else "against"


LEFT, RIGHT, TALL = 84, 196, 300
APART = 36


@dataclass(frozen=True, slots=True)
class Plane:
    """Two axes, both logarithmic: drawers to the right, milliseconds up."""

    least: int
    most: int
    low: int
    high: int

    @classmethod
    def of(cls, speeds: Sequence[Speed]) -> Plane:
        values = [max(v, 0.001) for s in speeds for v in (s.p50, s.p95, s.bare, s.embedding)]
        low = math.floor(math.log10(min(values)))
        high = max(math.ceil(math.log10(max(values))), low + 1)
        return cls(speeds[0].drawers, speeds[-1].drawers, low, high)

    def x(self, drawers: int) -> float:
        span = math.log(self.most / self.least) or 1.0
        return LEFT + 26 + (WIDTH - LEFT - RIGHT - 52) * math.log(drawers / self.least) / span

    def y(self, ms: float) -> float:
        above = (math.log10(max(ms, 0.001)) - self.low) / (self.high - self.low)
        return TOP + 10 + TALL * (1 - above)


def speed_by_size(speeds: Sequence[Speed]) -> str:
    """Recall's time by the size of a palace, beside its two limits. By size, ascending."""
    plane = Plane.of(speeds)

    def parts() -> Iterator[str]:
        yield from _axes(plane, speeds)
        yield from _limits(plane, speeds)
        yield from _recalls(plane, speeds)
        yield from _ends(plane, speeds[-1])

    description = ". ".join(
        f"{s.drawers:,} drawers: recall p50 {milliseconds(s.p50)}, p95 {milliseconds(s.p95)}, "
        f"NumPy {milliseconds(s.bare)}, embedding {milliseconds(s.embedding)}"
        for s in speeds
    )
    return _chart(
        "How recall slows as a palace grows",
        "Milliseconds without the question's embedding; dots are p50, caps p95. Logarithmic axes.",
        f"{description}.",
        TOP + TALL + 66,
        parts(),
    )


def _axes(plane: Plane, speeds: Sequence[Speed]) -> Iterator[str]:
    for power in range(plane.low, plane.high + 1):
        y = plane.y(10**power)
        yield _line(LEFT, y, WIDTH - RIGHT, y, "grid")
        yield _text(LEFT - 10, y + 5, f"{10**power:,g} ms", "soft end value")
    for speed in speeds:
        label = f"{speed.drawers:,}"
        yield _text(plane.x(speed.drawers), TOP + TALL + 32, label, "soft middle value")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield _text(middle, TOP + TALL + 52, "drawers in the palace", "soft middle")


def _path(plane: Plane, places: Sequence[tuple[int, float]], kind: str) -> str:
    through = " ".join(f"{plane.x(drawers):.1f},{plane.y(ms):.1f}" for drawers, ms in places)
    return f'<polyline points="{through}" class="{kind}"/>'


def _limits(plane: Plane, speeds: Sequence[Speed]) -> Iterator[str]:
    yield _path(plane, [(s.drawers, s.embedding) for s in speeds], "dotted")
    yield _path(plane, [(s.drawers, s.bare) for s in speeds], "limit")
    for speed in speeds:
        x, y = plane.x(speed.drawers), plane.y(speed.bare)
        yield _rect(x - 4, y - 4, 8, 8, "square")
        yield _text(x, y + 21, milliseconds(speed.bare), "value middle halo")


def _recalls(plane: Plane, speeds: Sequence[Speed]) -> Iterator[str]:
    yield _path(plane, [(s.drawers, s.p50) for s in speeds], "line")
    for speed in speeds:
        x, y, top = plane.x(speed.drawers), plane.y(speed.p50), plane.y(speed.p95)
        yield _line(x, y, x, top, "whisker")
        yield _line(x - 5, top, x + 5, top, "whisker")
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="dot"/>'
        yield _text(x, top - 8, milliseconds(speed.p50), "value middle ours halo")


def _ends(plane: Plane, last: Speed) -> Iterator[str]:
    """Labels at the lines' ends, without overlaps."""
    ends = sorted(
        [
            (plane.y(last.p50), "Loci's recall", "the whole of it", "line"),
            (plane.y(last.bare), "NumPy, float32", "the comparison alone", "limit"),
            (plane.y(last.embedding), "the bare embedder", "one question", "dotted"),
        ]
    )
    x, places = WIDTH - RIGHT + 8, _apart([y + 1 for y, *_ in ends])
    for y, (_, name, said, kind) in zip(places, ends, strict=True):
        yield _line(x, y - 4, x + 22, y - 4, kind)
        yield _text(x + 30, y, name, "ours" if kind == "line" else "")
        yield _text(x + 30, y + 16, said, "soft")


def _apart(places: Sequence[float]) -> list[float]:
    """The same order from the top, each far enough below the one before, none below the axis."""
    spread: list[float] = []
    for y in places:
        spread.append(max(y, spread[-1] + APART) if spread else y)
    too_low = max(0.0, spread[-1] - (TOP + TALL))
    return [y - too_low for y in spread]

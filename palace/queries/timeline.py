"""The palace over time: messages a month, and what was known of a day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, cast

from django.db import connection
from django.db.models import Count, F
from django.utils import timezone

from isolation.raw_sql import fetch_rows
from palace.models import Entity, Fact, FactQuerySet, Mention, Palace, Wing
from palace.queries import until_changed

# What counts of a day: the words said by then, or what was so then as known today.
Basis = Literal["said", "true"]
# The most bars of the histogram; more months share one.
BARS = 60
# Units of the drawing.
BAR, GAP, HEIGHT = 6, 1, 40
FACTS_SHOWN = 8
PEOPLE_SHOWN = 10
# People are those named in the messages of this time before the day.
RECENT = timedelta(days=90)
# No earlier day has a `RECENT` before it.
EARLIEST = datetime.min.replace(tzinfo=UTC) + RECENT

# A room of one month has counted its messages; of the few others each message is looked at.
_MONTHS = """
WITH rooms AS MATERIALIZED (
    SELECT id, kept_count,
        date_trunc('month', started_at AT TIME ZONE %(zone)s)::date AS month,
        date_trunc('month', ended_at AT TIME ZONE %(zone)s)::date AS last
    FROM palace_room WHERE palace_id = %(palace)s AND kept_count > 0
)
SELECT month, sum(messages)::bigint FROM (
    SELECT month, sum(kept_count) AS messages FROM rooms WHERE month = last GROUP BY 1
    UNION ALL
    SELECT date_trunc('month', said_at AT TIME ZONE %(zone)s)::date, count(*)
    FROM palace_drawer
    WHERE palace_id = %(palace)s AND trashed_at IS NULL
        AND room_id = ANY(ARRAY(SELECT id FROM rooms WHERE month <> last))
    GROUP BY 1
) counted GROUP BY month ORDER BY month
"""
# An array, since a frequent name makes the planner read all drawers in place of an index.
_NAMED = """
FROM palace_drawer WHERE palace_id = %(palace)s AND trashed_at IS NULL AND id = ANY(ARRAY(
    SELECT drawer_id FROM palace_mention WHERE palace_id = %(palace)s AND entity_id = %(entity)s
))
"""
_LATEST_NAMED = f"SELECT id {_NAMED} ORDER BY said_at DESC, id DESC LIMIT %(latest)s"
# A frequent name is found by walking back from the latest drawer. Without OFFSET the planner would
# join all mentions instead.
_WALKED_BACK = """
SELECT id FROM (
    SELECT id, said_at FROM palace_drawer WHERE palace_id = %(palace)s AND trashed_at IS NULL
    ORDER BY said_at DESC, id DESC LIMIT %(walked)s
) walked
WHERE EXISTS (
    SELECT 1 FROM palace_mention
    WHERE palace_id = %(palace)s AND drawer_id = walked.id AND entity_id = %(entity)s OFFSET 0
)
ORDER BY said_at DESC, id DESC LIMIT %(latest)s
"""
WALKED = 2000
# A name of up to so many mentions is rare: reading all of them takes less than walking.
RARE = 500
_MENTIONS = """
SELECT count(*) FROM (
    SELECT 1 FROM palace_mention
    WHERE palace_id = %(palace)s AND entity_id = %(entity)s LIMIT %(counted)s
) mentions
"""
# Each part in its order; its rows begin with its name.
_NAMING = f"""
WITH named AS MATERIALIZED (
    SELECT id, room_id, said_at {_NAMED}
), rooms AS MATERIALIZED (
    SELECT room_id, min(said_at) AS begun, count(*) AS messages,
        date_trunc('month', min(said_at) AT TIME ZONE %(zone)s) AS month,
        date_trunc('month', max(said_at) AT TIME ZONE %(zone)s) AS last
    FROM named GROUP BY room_id
)
(
    SELECT 'month', month AT TIME ZONE 'UTC', sum(messages)::bigint FROM (
        SELECT month, messages FROM rooms WHERE month = last
        UNION ALL
        SELECT date_trunc('month', said_at AT TIME ZONE %(zone)s), 1 FROM named
        WHERE room_id IN (SELECT room_id FROM rooms WHERE month <> last)
    ) counted GROUP BY month ORDER BY month
) UNION ALL (
    SELECT 'talk', begun, room_id FROM rooms ORDER BY begun DESC, room_id LIMIT %(talks)s
) UNION ALL (
    SELECT 'latest', said_at, id FROM named ORDER BY 2 DESC, 3 DESC LIMIT %(latest)s
)
"""  # noqa: S608 - both parts are constants
# The facts of a timeline as they begin and end, from those selected as `stated`.
_OF_FACTS = """
(
    SELECT %(begins)s::text, valid_from AS at, id FROM stated
    ORDER BY at DESC NULLS LAST, id LIMIT %(most)s
) UNION ALL (
    SELECT %(ends)s::text, valid_to AS at, id FROM stated WHERE valid_to IS NOT NULL
    ORDER BY at DESC, id LIMIT %(most)s
)
"""
_WAS_TRUE = "palace_id = %(palace)s AND (retired_at IS NULL OR fate = ANY(%(was_true)s))"
_OF_ENTITY = f"""
WITH stated AS MATERIALIZED (
    SELECT id, valid_from, valid_to FROM palace_fact
    WHERE {_WAS_TRUE} AND (subject_id = %(entity)s OR object_entity_id = %(entity)s)
) {_OF_FACTS}
"""  # noqa: S608 - all parts are constants
# Of a wing: all that its kept messages support, and its conversations. What is supported is found
# first: the planner expects few facts, and would look through all rooms for each of them.
_IN_WING = f"""
WITH rooms AS MATERIALIZED (
    SELECT id, started_at FROM palace_room
    WHERE palace_id = %(palace)s AND wing_id = %(wing)s AND kept_count > 0
), supported AS MATERIALIZED (
    SELECT DISTINCT evidence.fact_id
    FROM palace_evidence evidence
    JOIN palace_drawer drawer
        ON drawer.palace_id = evidence.palace_id AND drawer.id = evidence.drawer_id
    JOIN rooms ON rooms.id = drawer.room_id
    WHERE evidence.palace_id = %(palace)s AND drawer.trashed_at IS NULL
), stated AS MATERIALIZED (
    SELECT id, valid_from, valid_to FROM palace_fact
    WHERE {_WAS_TRUE} AND id = ANY(ARRAY(SELECT fact_id FROM supported))
) {_OF_FACTS} UNION ALL (
    SELECT %(talk)s::text, started_at AS at, id FROM rooms ORDER BY at DESC, id LIMIT %(most)s
)
"""  # noqa: S608 - all parts are constants


@dataclass(frozen=True, slots=True)
class Histogram:
    """Messages a month, or of several months where there are many.

    Attributes:
        first, last: The first and the last day one can choose.
        before, after: The bars until the chosen day and after it, each one path of an SVG.
        width: Of the drawing; its height is `HEIGHT`.
        most: The number of messages of the highest bar.
    """

    first: date
    last: date
    before: str
    after: str
    width: int
    most: int

    @property
    def days(self) -> int:
        return (self.last - self.first).days


def histogram(months: Sequence[tuple[date, int]], until: date | None) -> Histogram | None:
    """Of messages by the first day of their month, in order; None without any."""
    if not months:
        return None
    today = timezone.localdate()
    first, last = months[0][0], max(_month_end(months[-1][0]), today)
    bars = _bars(months, first, last)
    most = max(messages for _, _, messages in bars)
    day = until or last
    return Histogram(
        first=first,
        last=last,
        before="".join(_bar(n, size, most) for n, start, size in bars if size and start <= day),
        after="".join(_bar(n, size, most) for n, start, size in bars if size and start > day),
        width=(bars[-1][0] + 1) * (BAR + GAP) - GAP,
        most=most,
    )


def messages_by_month(palace: Palace) -> list[tuple[date, int]]:
    """First day and messages of each month that has any."""
    zone = str(timezone.get_current_timezone())
    months = until_changed(palace, f"months {zone}", lambda: _months(palace, zone))
    return [(date.fromisoformat(month), messages) for month, messages in months]


def _months(palace: Palace, zone: str) -> list[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_MONTHS, {"palace": palace.pk, "zone": zone})
        return [(month.isoformat(), messages) for month, messages in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Naming:
    """Where an entity is named, outside the trash.

    Attributes:
        months: First day of each month in which messages name it, and how many they are.
        talks: The rooms in which it is named, and when first, the latest first.
        latest: Keys of the drawers that name it, the latest first.
    """

    months: list[tuple[date, int]]
    talks: list[tuple[datetime, int]]
    latest: list[int]


def naming(entity: Entity, *, talks: int, latest: int) -> Naming:
    """In one query: the drawers that name an entity are looked up once.

    Args:
        talks: At most so many rooms; likewise `latest`.
    """
    parameters: dict[str, str | int] = {
        "palace": entity.palace_id,
        "entity": entity.pk,
        "zone": str(timezone.get_current_timezone()),
        "talks": talks,
        "latest": latest,
    }
    name = " ".join(["naming", *map(str, parameters.values())])
    found = Naming([], [], [])
    for what, isoformat, key in until_changed(entity.palace, name, lambda: _named(parameters)):
        at = datetime.fromisoformat(isoformat)
        if what == "month":
            found.months.append((at.date(), key))
        elif what == "talk":
            found.talks.append((at, key))
        else:
            found.latest.append(key)
    return found


def _named(parameters: dict[str, str | int]) -> list[tuple[str, str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_NAMING, parameters)
        return [(what, at.isoformat(), key) for what, at, key in cursor.fetchall()]


def latest_named(entity: Entity, *, at_most: int) -> list[int]:
    """`Naming.latest` alone."""
    parameters = {
        "palace": entity.palace_id,
        "entity": entity.pk,
        "latest": at_most,
        "walked": WALKED,
        "counted": RARE + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MENTIONS, parameters)
        ((mentions,),) = cursor.fetchall()
        if mentions > RARE:
            cursor.execute(_WALKED_BACK, parameters)
            walked = [key for (key,) in cursor.fetchall()]
            if len(walked) == at_most:
                return walked
        cursor.execute(_LATEST_NAMED, parameters)
        return [key for (key,) in cursor.fetchall()]


def _bars(
    months: Sequence[tuple[date, int]], first: date, last: date
) -> list[tuple[int, date, int]]:
    """Number, first month and messages of each bar, without gaps between them."""
    counts = dict(months)
    every = [_add_months(first, n) for n in range(_months_between(first, last) + 1)]
    step = -(-len(every) // BARS)
    return [
        (number, every[start], sum(counts.get(month, 0) for month in every[start : start + step]))
        for number, start in enumerate(range(0, len(every), step))
    ]


def _bar(number: int, messages: int, most: int) -> str:
    height = max(round(messages / most * HEIGHT), 1)
    return f"M{number * (BAR + GAP)} {HEIGHT}v-{height}h{BAR}v{height}z"


def _months_between(first: date, last: date) -> int:
    return (last.year - first.year) * 12 + last.month - first.month


def _add_months(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, 1)


def _month_end(day: date) -> date:
    return _add_months(day, 1) - timedelta(days=1)


@dataclass(frozen=True, slots=True)
class KnownThen:
    """
    Attributes:
        facts: Lasting facts of that day, the newest first.
        people: The people named most in the three months before.
    """

    facts: list[Fact]
    people: list[Entity]


def known_then(palace: Palace, moment: datetime, basis: Basis) -> KnownThen:
    facts = facts_of_day(palace, moment, basis).exclude(type=Fact.Type.EVENT)
    newest = facts.select_related("subject").order_by(F("valid_from").desc(nulls_last=True), "-pk")
    return KnownThen(list(newest[:FACTS_SHOWN]), _people(palace, moment))


def facts_of_day(palace: Palace, moment: datetime, basis: Basis) -> FactQuerySet:
    facts = Fact.objects.within(palace)
    return facts.said_by(moment) if basis == "said" else facts.true_at(moment)


def _people(palace: Palace, moment: datetime) -> list[Entity]:
    named = Mention.objects.filter(
        palace=palace,
        drawer__palace=palace,
        drawer__trashed_at=None,
        drawer__said_at__gt=max(moment, EARLIEST) - RECENT,
        drawer__said_at__lte=moment,
    )
    people = Entity.objects.filter(palace=palace, kind__in=Entity.BEINGS)
    counts = named.order_by().values("entity").annotate(named=Count("pk"))
    most = counts.filter(entity__in=people.values("pk")).order_by("-named", "entity")
    found = list(most.values_list("entity", flat=True)[:PEOPLE_SHOWN])
    by_key = people.in_bulk(found)
    return [by_key[key] for key in found]


class Happening(StrEnum):
    """A line of a timeline."""

    BEGINS = "begins"
    ENDS = "ends"
    TALK = "talk"


# Kind, moment, and the key of a fact or room.
Happened = tuple[str, datetime | None, int]


def happenings(
    entity: Entity, talks: Sequence[tuple[datetime, int]], *, at_most: int
) -> list[Happened]:
    """The latest first and unknown moments last.

    Facts about the entity begin and end; a conversation stands where it first names the entity.

    Args:
        talks: The latest of `naming`, at least `at_most` if there are as many.
    """
    given = _given(entity.palace_id, at_most)
    of_facts = fetch_rows(_OF_ENTITY, {**given, "entity": entity.pk}, prepared=True)
    of_talks = [(str(Happening.TALK), at, room) for at, room in talks]
    found = cast("list[Happened]", [*of_facts, *of_talks])
    return sorted(found, key=_latest_first)[:at_most]


def happenings_in(wing: Wing, *, at_most: int) -> list[Happened]:
    """Those of a wing, in the same order: its conversations, and what was learnt from them.

    A conversation stands where it began.
    """
    # Not prepared: its best plan depends on the wing.
    found = fetch_rows(_IN_WING, {**_given(wing.palace_id, at_most), "wing": wing.pk})
    return sorted(cast("list[Happened]", found), key=_latest_first)[:at_most]


def _given(palace: int, at_most: int) -> dict[str, Any]:
    """The parameters of both statements."""
    return {
        "palace": palace,
        "was_true": [str(fate) for fate in Fact.WAS_TRUE],
        "most": at_most,
        **{str(kind): str(kind) for kind in Happening},
    }


def _latest_first(row: Happened) -> tuple[float, str, int]:
    kind, at, key = row
    return -at.timestamp() if at else math.inf, kind, key

"""Purge: permanently deletes trashed drawers, or the sample, with all that is derived from them."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from celery import shared_task
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Length
from django.utils import timezone

from isolation import row_access
from language.storable import normalize_query
from llm.embedding import forget, max_passage_chars
from palace.curation.empty_places import remove_emptied
from palace.curation.trash import expired, trash_drawers, up_to
from palace.knowledge.episodes import delete_episodes_of
from palace.knowledge.facts import delete_supported_by
from palace.models import (
    Activity,
    Drawer,
    DrawerQuerySet,
    EmbeddingSpace,
    ExpectedDrawer,
    Fact,
    ImportJob,
    Mention,
    Palace,
    Passage,
    Pointer,
    RecallCase,
    RecollectionTrace,
    Room,
    Wing,
    forget_answers,
    in_palace,
    open_palace,
)
from palace.models.concurrency import held_if_free
from palace.recall import remove_hits
from palace.storage import record_purged, split_text
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import model_of

logger = logging.getLogger(__name__)
# Maximum drawers and characters per transaction; at least one drawer.
BATCH = 500
BATCH_CHARS = 4_000_000
# Time limit in a request; a worker does the rest.
PURGE_IN_REQUEST_S = 3
# After this time a worker takes up other tasks before the rest.
PURGE_S = 45


class Purge:
    """Deletes trashed drawers of one palace in batches, and reports them in an activity.

    Each batch is one transaction with its report, so a repeated run continues. Drawers restored
    in the meantime are kept.

    Attributes:
        count: Number of deleted drawers.
    """

    def __init__(self, palace: Palace) -> None:
        self.count = 0
        self._palace = palace
        self._activity = Activity(palace=palace, kind=Activity.Kind.DRAWERS_PURGED)

    def run(self, drawers: DrawerQuerySet, *, seconds: float | None = None) -> bool:
        """Purge the trashed ones of `drawers`; False if the time was over first."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._purge_batch(drawers):
            if deadline is not None and time.monotonic() > deadline:
                return not drawers.within(self._palace).trashed().exists()
        return True

    @transaction.atomic
    def _purge_batch(self, drawers: DrawerQuerySet) -> bool:
        palace = self._palace
        palace.lock()
        batch = _next_batch(drawers.within(palace).trashed())
        if not batch:
            return False
        keys = [drawer.pk for drawer in batch]
        mentions = Mention.objects.filter(palace=palace, drawer__in=keys)
        entities = list(mentions.values_list("entity_id", flat=True).distinct())
        entities += delete_supported_by(palace, keys)
        postings.remove(palace, [drawer for drawer in batch if drawer.mined_at])
        forget_vectors(palace, batch)
        scrub_traces(palace, batch)
        scrub_cases(palace, batch)
        # Stored API responses may contain these texts.
        forget_answers(palace.owner_id)
        record_purged(palace, keys)
        with connection.cursor() as cursor:
            # The database cascades to passages and mentions.
            cursor.execute(
                "DELETE FROM palace_drawer WHERE palace_id = %s AND id = ANY(%s)",
                [palace.pk, keys],
            )
        delete_episodes_of(palace, batch)
        remove_emptied(palace, batch, entities)
        self._report(len(batch))
        return True

    def _report(self, count: int) -> None:
        """Update the run's single activity in the batch's transaction."""
        self.count += count
        what = "a drawer" if self.count == 1 else f"{self.count:,} drawers"
        self._activity.summary = f"Deleted {what} for good."
        self._activity.detail = {"drawers": self.count}
        self._activity.save()


def purge_expired(*, seconds: float) -> bool:
    """Purge expired drawers of all palaces; True if none are left.

    A failure in one palace does not affect the others.
    """
    deadline = time.monotonic() + seconds
    due = expired(timezone.now())
    with row_access.sweep("trash"):
        palaces = list(Palace.objects.filter(pk__in=due.values("palace")).order_by("?"))
    for palace in palaces:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        try:
            with open_palace(palace):
                Purge(palace).run(due, seconds=left)
        except Exception:
            logger.exception("The trash of palace %s could not be purged.", palace.uuid)
    return time.monotonic() < deadline


@shared_task(name="palace.tasks.purge_trash", reject_on_worker_lost=False)
def purge_trash() -> None:
    """Purge expired trash for a limited time, then queue the rest."""
    with held_if_free("purge the trash") as ours:
        done = not ours or purge_expired(seconds=PURGE_S)
    if not done:
        purge_trash.delay()


@shared_task(name="palace.tasks.empty_trash", reject_on_worker_lost=False)
def empty_trash(palace_id: int, through: int) -> None:
    """Purge the trash up to a batch for a limited time, then queue the rest.

    Args:
        through: Key of the last batch to purge.
    """
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces):
        palace = palaces.first()
        drawers = up_to(through)
        if palace is not None and not Purge(palace).run(drawers, seconds=PURGE_S):
            empty_trash.delay(palace_id, through)


def _next_batch(drawers: DrawerQuerySet) -> list[Drawer]:
    sizes = drawers.order_by("pk").values_list("pk", Length("text"))[:BATCH]
    keys: list[int] = []
    room = BATCH_CHARS
    for key, size in sizes:
        room -= size
        if keys and room < 0:
            break
        keys.append(key)
    locked = drawers.filter(pk__in=keys).order_by("pk").select_related("room__wing")
    return list(locked.select_for_update(of=("self",)))


def forget_vectors(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Delete cached vectors of the drawers' passages, with stored and recomputed spans."""
    texts = {drawer.pk: drawer.text for drawer in drawers}
    rows = Passage.objects.filter(palace=palace, drawer__in=list(texts)).order_by()
    cut = list(rows.values_list("space_id", "drawer_id", "start", "end"))
    for space in EmbeddingSpace.objects.order_by("pk"):
        model = model_of(space)
        most = max_passage_chars(model)
        passages = {text[a:b] for text in texts.values() for a, b in split_text(text, most)}
        passages |= {texts[key][a:b] for of, key, a, b in cut if of == space.pk}
        forget(passages, model)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A drawer as a block may show it: with a pointer, whole or as one of its passages."""

    drawer: Drawer
    pointer: Pointer
    passage: tuple[int, int]
    note: str = ""


def scrub_traces(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Remove the drawers' texts from the context blocks and questions of traces.

    A question is removed if it equals a drawer's text. Ids and scores remain. Call it in the
    transaction that deletes the drawers.
    """
    by_uuid = {str(drawer.uuid): drawer for drawer in drawers}
    questions = {normalize_query(drawer.text) for drawer in drawers}
    traces = RecollectionTrace.objects.filter(
        palace=palace, pk__in=_affected_traces(palace, list(by_uuid), list(questions))
    )
    passages = _passages(palace, drawers)
    changed = []
    read = traces.only("query", "reading", "hits", "facts", "carried", "context")
    for trace in read.order_by("pk").iterator():
        found = [
            (by_uuid[hit["drawer"]], Pointer.parse(hit["pointer"]))
            for hit in (*trace.hits, *trace.facts, *trace.carried)
            if hit["drawer"] in by_uuid
        ]
        trace.context = remove_hits(
            trace.context,
            [
                _Shown(drawer, pointer, span)
                for drawer, pointer in found
                for span in passages[drawer.pk]
            ],
        )
        if trace.query in questions:
            trace.query, trace.reading = "", {}
        changed.append(trace)
    own = RecollectionTrace.objects.filter(palace=palace)
    own.bulk_update(changed, ["query", "reading", "context"], batch_size=200)


def scrub_cases(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Delete cases that expect only these drawers, or whose question equals a drawer's text.

    For other cases the database cascades. Call it in the transaction that deletes the drawers.
    """
    cases = RecallCase.objects.within(palace)
    expected = ExpectedDrawer.objects.filter(palace=palace)
    concerned = expected.filter(drawer__in=[drawer.pk for drawer in drawers]).values("case")
    others = expected.exclude(drawer__in=[drawer.pk for drawer in drawers]).values("case")
    cases.filter(pk__in=concerned).exclude(pk__in=others).delete()
    cases.filter(query__in={normalize_query(drawer.text) for drawer in drawers}).delete()


def _affected_traces(palace: Palace, uuids: list[str], questions: list[str]) -> list[int]:
    """Keys of the traces that contain one of the drawers, or ask one of the questions."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM palace_recollectiontrace WHERE palace_id = %s AND (query = ANY(%s)"
            " OR EXISTS (SELECT FROM jsonb_array_elements(hits || facts || carried) hit"
            " WHERE hit ->> 'drawer' = ANY(%s)))",
            [palace.pk, questions, uuids],
        )
        return [key for (key,) in cursor.fetchall()]


def _passages(palace: Palace, drawers: Sequence[Drawer]) -> dict[int, list[tuple[int, int]]]:
    """By drawer, the spans that a block may have shown, the whole text first."""
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for drawer in drawers:
        spans[drawer.pk].append((0, len(drawer.text)))
    rows = Passage.objects.filter(palace=palace, drawer__in=[d.pk for d in drawers]).order_by()
    for key, start, end in rows.values_list("drawer_id", "start", "end"):
        spans[key].append((start, end))
    return spans


@dataclass(frozen=True, slots=True)
class Removed:
    """What the removal has deleted; `facts` counts active ones."""

    conversations: int
    messages: int
    facts: int


@transaction.atomic
def remove_sample(palace: Palace) -> Removed:
    """Delete the sample's messages, and the places, facts and entities that rest on them alone.

    All or nothing; the user's own messages, and what rests on them, stay. A load that is running
    ends, because its job is deleted too. Its spool file is left to the periodic task.
    """
    palace.lock()
    drawers = Drawer.objects.filter(palace=palace, source=ImportJob.SAMPLE)
    jobs = ImportJob.objects.filter(palace=palace, format=ImportJob.SAMPLE)
    rooms = list(drawers.order_by().values_list("room__uuid", flat=True).distinct())
    wings = list(drawers.order_by().values_list("room__wing__uuid", flat=True).distinct())
    conversations = drawers.order_by().values("conversation").distinct().count()
    facts = Fact.objects.within(palace).active()
    active = facts.count()
    earlier = list(Activity.objects.filter(palace=palace).values_list("pk", flat=True))
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    _forget_activities(palace, rooms, wings, list(jobs.values_list("uuid", flat=True)), earlier)
    jobs.delete()
    if not Room.objects.within(palace).exists():
        Wing.objects.filter(palace=palace, number=Wing.UNSORTED).delete()
    return Removed(conversations, purge.count, active - facts.count())


def _forget_activities(
    palace: Palace, rooms: list[UUID], wings: list[UUID], jobs: list[UUID], earlier: list[int]
) -> None:
    """Delete the activities of the sample's places and loads, and those of its removal.

    Args:
        earlier: Keys of the activities from before the removal.
    """
    remaining = Room.objects.filter(palace=palace, uuid__in=rooms)
    gone = set(rooms) - set(remaining.values_list("uuid", flat=True))
    of_sample = Q(detail__room__in=[str(key) for key in gone])
    others = Wing.objects.filter(palace=palace, uuid__in=wings).values_list("uuid", flat=True)
    of_sample |= Q(detail__wing__in=[str(key) for key in set(wings) - set(others)])
    of_sample |= Q(detail__job__in=[str(key) for key in jobs])
    activities = Activity.objects.filter(palace=palace)
    activities.filter(of_sample | ~Q(pk__in=earlier)).delete()

"""What becomes of episodes when the words they rest on go, or come back.

What mining wrote of a conversation may quote any of it: it is put away when one of its messages
goes to the trash, and made anew from what is left. What a caller stored goes when nothing of the
conversation is left here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef

from palace.knowledge.episodes.commit import derived
from palace.knowledge.episodes.material import Key
from palace.models import Drawer, Episode, Palace, Room
from palace.models.hierarchy import DrawerQuerySet
from palace.storage.indexing.episode_vectors import forget_texts


def put_away(palace: Palace, at: datetime) -> None:
    """Drawers went to the trash at this moment. Call it holding the palace."""
    gone = Drawer.objects.within(palace).filter(trashed_at=at)
    _write_again(palace, gone)
    kept = Episode.objects.within(palace).kept()
    of_conversation = gone.filter(source=OuterRef("source"), conversation=OuterRef("conversation"))
    kept.derived().filter(Exists(of_conversation)).update(trashed_at=at)
    stored = kept.stored().filter(conversation__in=gone.values("conversation"))
    stored.exclude(Exists(_of_conversation(palace).kept())).update(trashed_at=at)


def bring_back(palace: Palace, drawers: Collection[int]) -> None:
    """Drawers, by their keys, are back from the trash. Call it holding the palace.

    What mining wrote comes back when its turn comes, which is now.
    """
    back = Drawer.objects.within(palace).filter(pk__in=drawers)
    _write_again(palace, back)
    stored = Episode.objects.within(palace).stored().exclude(trashed_at=None)
    of_these = stored.filter(conversation__in=back.values("conversation"))
    of_these.filter(Exists(_of_conversation(palace).kept())).update(trashed_at=None)


def forget_resting_on(palace: Palace, purged: Sequence[Drawer]) -> None:
    """Delete the episodes that may hold words of these drawers, which were just deleted."""
    gone_at: dict[Key, datetime] = {}
    for drawer in purged:
        if drawer.trashed_at is not None:
            key = (drawer.source, drawer.conversation)
            gone_at[key] = max(gone_at.get(key, drawer.trashed_at), drawer.trashed_at)
    doomed = [
        episode
        for key, episode in derived(palace, list(gone_at)).items()
        # Written since without those words, and not put away again, it stays.
        if episode.trashed_at is not None or episode.updated_at <= gone_at[key]
    ]
    stored = Episode.objects.within(palace).stored()
    named = stored.filter(conversation__in={conversation for _, conversation in gone_at})
    doomed += named.exclude(Exists(_of_conversation(palace)))
    if doomed:
        rooms = (
            Drawer.objects.within(palace)
            .kept()
            .filter(
                source__in={episode.source for episode in doomed},
                conversation__in={episode.conversation for episode in doomed},
            )
        )
        _write_again(palace, rooms)
        Episode.objects.within(palace).filter(pk__in=[episode.pk for episode in doomed]).delete()
        forget_texts([episode.summary for episode in doomed])


def _write_again(palace: Palace, drawers: DrawerQuerySet) -> None:
    keys = list(drawers.order_by().values_list("room_id", flat=True).distinct())
    Room.objects.within(palace).filter(pk__in=keys).mark_episode_due()


def _of_conversation(palace: Palace) -> DrawerQuerySet:
    """What is here of the conversation that a caller has named, whatever its source."""
    return Drawer.objects.within(palace).filter(conversation=OuterRef("conversation"))

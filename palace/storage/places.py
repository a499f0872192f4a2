"""Places that messages are filed in: wings by name, and numbers of rooms."""

from __future__ import annotations

from django.db.models import Max

from language.extraction import WingFound
from language.slugs import slug_of
from language.storable import LABEL_LENGTH
from palace.models import Palace, Room, Wing, WingAlias


def next_room_number(palace: Palace) -> int:
    highest = Room.objects.filter(palace=palace).aggregate(Max("number"))["number__max"] or 0
    purged = Palace.objects.values_list("highest_room", flat=True).get(pk=palace.pk)
    return max(highest, purged) + 1


def unsorted_wing(palace: Palace) -> Wing:
    wing, _ = Wing.objects.get_or_create(
        palace=palace,
        number=Wing.UNSORTED,
        defaults={"slug": "unsorted", "name": "Unsorted", "kind": Wing.Kind.TOPIC},
    )
    return wing


def wing_for(palace: Palace, found: WingFound) -> Wing:
    """The wing with that name or alias, created if missing. The caller locks the palace."""
    slugs = list(dict.fromkeys(map(slug_of, (found.name, *found.aliases))))
    wings = Wing.objects.filter(palace=palace)
    wing = wings.filter(slug=slugs[0]).first()
    wing = wing or wings.filter(aliases__slug__in=slugs).order_by("number").first()
    if wing is None:
        highest = wings.aggregate(Max("number"))["number__max"] or 0
        gone = Palace.objects.values_list("highest_wing", flat=True).get(pk=palace.pk)
        wing = Wing.objects.create(
            palace=palace,
            number=max(highest, gone) + 1,
            slug=slugs[0],
            name=found.name[:LABEL_LENGTH],
            kind=found.kind,
        )
    known = WingAlias.objects.filter(palace=palace, slug__in=slugs)
    taken = set(known.values_list("slug", flat=True))
    missing = [
        WingAlias(palace=palace, wing=wing, slug=slug) for slug in slugs if slug not in taken
    ]
    if missing:
        WingAlias.objects.bulk_create(missing)
    return wing

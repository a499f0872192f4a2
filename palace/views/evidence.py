"""Facts with the exact words they rest on, cut out of their drawers by the database."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import F, Prefetch, QuerySet
from django.db.models.functions import Substr

from palace.models import Evidence, ProposalQuote
from palace.models.facts import FactQuerySet

Stretch = TypeVar("Stretch", Evidence, ProposalQuote)

# Of longer words the beginning is shown; the drawer has the rest.
WORDS_LENGTH = 600


def with_words(facts: FactQuerySet, *, at_most: int) -> FactQuerySet:
    """With subject and object at hand, and `shown`: the words that were said first.

    Args:
        at_most: How many stretches of words each fact gets.
    """
    words = cut_out(Evidence.objects.all()).order_by("drawer__said_at", "start", "pk")
    return facts.select_related("subject", "object_entity").prefetch_related(
        Prefetch("evidence", words[:at_most], to_attr="shown")
    )


def cut_out(stretches: QuerySet[Stretch]) -> QuerySet[Stretch]:
    """Each with its `words`, and its drawer without the text around them."""
    length = F("end") - F("start")
    cut: QuerySet[Stretch] = (
        stretches.select_related("drawer__room__wing")
        .defer("drawer__text")
        .annotate(words=Substr(Substr("drawer__text", F("start") + 1, length), 1, WORDS_LENGTH))
    )
    return cut

"""Deleting facts for good, with their words wherever a history repeats them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from palace.models import Fact, FactEvent, Palace


def delete_rows(palace: Palace, facts: Sequence[Fact]) -> None:
    """Delete rows; call it holding the palace. A memory without rows loses its history too."""
    with connection.cursor() as cursor:
        # Evidence and vectors go with them, in the database.
        cursor.execute(
            "DELETE FROM palace_fact WHERE palace_id = %s AND id = ANY(%s)",
            [palace.pk, [fact.pk for fact in facts]],
        )
    memories = {fact.memory for fact in facts}
    left = Fact.objects.within(palace).filter(memory__in=memories)
    ended = memories - set(left.values_list("memory", flat=True))
    events = FactEvent.objects.filter(palace=palace)
    events.filter(memory__in=ended).delete()
    lasting = events.filter(memory__in=memories - ended)
    texts = {fact.text for fact in facts}
    lasting.filter(old_text__in=texts).update(old_text=None)
    lasting.filter(new_text__in=texts).update(new_text=None)

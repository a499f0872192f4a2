"""Deleting facts for good, with their words wherever a history repeats them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from palace.models import Evidence, Fact, FactEvent, Palace, Statement
from palace.storage.indexing.fact_vectors import forget_texts, index_in_use


def delete_rows(palace: Palace, facts: Sequence[Fact]) -> None:
    """Delete rows; call it holding the palace. A memory without rows loses its history too."""
    keys = [fact.pk for fact in facts]
    forget_proposals(palace, facts=keys)
    index_in_use().delete(palace, keys)
    with connection.cursor() as cursor:
        # Evidence goes with them, in the database.
        cursor.execute(
            "DELETE FROM palace_fact WHERE palace_id = %s AND id = ANY(%s)", [palace.pk, keys]
        )
    memories = {fact.memory for fact in facts}
    left = Fact.objects.within(palace).filter(memory__in=memories)
    ended = memories - set(left.values_list("memory", flat=True))
    events = FactEvent.objects.filter(palace=palace)
    events.filter(memory__in=ended).delete()
    lasting = events.filter(memory__in=memories - ended)
    texts = {fact.text for fact in facts}
    forget_texts(texts)
    lasting.filter(old_text__in=texts).update(old_text=None)
    lasting.filter(new_text__in=texts).update(new_text=None)


def forget_statements(palace: Palace, facts: Collection[int]) -> None:
    """Delete the statements that facts come from, by their keys: else they would come again."""
    words = Evidence.objects.filter(palace=palace, fact__in=facts)
    stretches = set(words.values_list("drawer_id", "start", "end"))
    told = Statement.objects.filter(palace=palace, drawer__in={key for key, *_ in stretches})
    gone = [
        statement.pk
        for statement in told
        if any((statement.drawer_id, *span) in stretches for _, *span in statement.content["words"])
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM palace_statement WHERE palace_id = %s AND id = ANY(%s)", [palace.pk, gone]
        )


def forget_proposals(
    palace: Palace, *, facts: Collection[int] = (), drawers: Collection[int] = ()
) -> None:
    """Delete what was proposed of these facts, or rests on these drawers, all by their keys.

    Decided or not: a proposal repeats words. Call it before they go.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM palace_proposal p WHERE palace_id = %s AND (
                EXISTS (SELECT FROM palace_proposalfact f WHERE f.palace_id = p.palace_id
                        AND f.proposal_id = p.id AND f.fact_id = ANY(%s))
                OR EXISTS (SELECT FROM palace_proposalquote q WHERE q.palace_id = p.palace_id
                           AND q.proposal_id = p.id AND q.drawer_id = ANY(%s)))
            """,
            [palace.pk, list(facts), list(drawers)],
        )

"""Chains of facts: `supersedes` leads from a fact to everything that it replaced.

A row has one `supersedes`. If it replaces several rows, they are in one chain: the next ones follow
where its chain ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from palace.models import Fact, Palace

_CHAIN = """
WITH RECURSIVE chain (id, before, place) AS (
    SELECT id, supersedes_id, 0 FROM palace_fact WHERE palace_id = %(palace)s AND id = %(fact)s
    UNION ALL
    SELECT f.id, f.supersedes_id, c.place + 1
    FROM chain c JOIN palace_fact f ON f.palace_id = %(palace)s AND f.id = c.before
) CYCLE id SET is_circle USING path
SELECT id FROM chain WHERE NOT is_circle ORDER BY place
"""


def chain_of(palace: Palace, fact: int) -> list[int]:
    """The key of a row, and of all that its `supersedes` leads to, in order."""
    with connection.cursor() as cursor:
        cursor.execute(_CHAIN, {"palace": palace.pk, "fact": fact})
        return [key for (key,) in cursor.fetchall()]


def append_to_chain(palace: Palace, fact: Fact, replaced: Fact) -> None:
    """Make a replaced row reachable from the stored row that took its place."""
    if fact.supersedes_id == replaced.pk:
        return
    link = link_between(chain_of(palace, fact.pk), chain_of(palace, replaced.pk))
    if link is None:
        return
    if link == fact.pk:
        fact.supersedes = replaced
    Fact.objects.within(palace).filter(pk=link).update(supersedes=replaced)


def follow_versions(palace: Palace, fact: Fact) -> None:
    """Make all other versions of its memory reachable from a stored row, their new head."""
    others = Fact.objects.within(palace).filter(memory=fact.memory).exclude(pk=fact.pk)
    rows = list(others.order_by("pk"))
    followed = {fact.supersedes_id, *(row.supersedes_id for row in rows)}
    for row in rows:
        if row.pk not in followed:
            append_to_chain(palace, fact, row)


def link_between(chain: Sequence[int], replaced: Sequence[int]) -> int | None:
    """The row of a chain, given by keys, that should supersede the first of `replaced`.

    It is the last one before both chains join, or end. None if that one is in the chain already, or
    if the chain itself is below it.
    """
    below = set(replaced)
    link: int | None = None
    for row in chain:
        if row == replaced[0]:
            return None
        if row in below:
            break
        link = row
    return link


def bridge_deleted(palace: Palace, keys: Collection[int]) -> None:
    """Link rows past those that will be deleted, given by key, to what these superseded."""
    facts = Fact.objects.within(palace).order_by()
    before = dict(facts.filter(pk__in=keys).values_list("pk", "supersedes_id"))
    above = facts.filter(supersedes__in=keys).exclude(pk__in=keys)
    for fact, old in above.values_list("pk", "supersedes_id"):
        while old in before:
            old = before[old]
        facts.filter(pk=fact).update(supersedes=old)

"""Webhooks under fire: each change of a fact and each mining is delivered, a change under one id.

Delivery is at least once: the same event may arrive again, under the same id. A change that arrives
under two ids is doubled. What neither arrived nor waits to be sent is lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import httpx

from bench.fire.installation import Installation
from bench.fire.load import Client, Load
from bench.webhook_receiver import Heard, Receiver

CHANGED, MINED = "fact.changed", "mined"
# What each is about, in its payload.
_SUBJECTS = {CHANGED: "change", MINED: "activity"}
_HAPPENED = """
SELECT uuid::text FROM palace_factevent
UNION ALL SELECT uuid::text FROM palace_activity WHERE kind = 'memory_mined'
"""
_WAITING = "SELECT about::text FROM palace_webhookdelivery WHERE due_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Events:
    """
    Attributes:
        arrived: How many different changes and minings.
        again: How many deliveries came once more under the same id, which is allowed.
        lost: The ids of what happened, did not arrive and is not waiting to be sent.
        doubled: The ids of changes that arrived under more than one id.
    """

    arrived: int
    again: int
    lost: list[str]
    doubled: list[str]

    def counts(self) -> dict[str, int]:
        return {
            "events_arrived": self.arrived,
            "events_again": self.again,
            "events_lost": len(self.lost),
            "events_doubled": len(self.doubled),
        }

    def examples(self) -> Iterator[str]:
        for name, ids in (("lost", self.lost), ("doubled", self.doubled)):
            yield from (f"event {name}: {about}" for about in ids[:5])


def subscribe(load: Load, client: Client, receiver: Receiver) -> None:
    """Add the webhook for all palaces, before anything happens in them."""
    wanted = {"url": receiver.url, "events": [CHANGED, MINED]}

    def add() -> httpx.Response | None:
        return client.ask("POST", "/v1/webhooks/", json=wanted)

    load.insist(add, {201})


def events_of(installation: Installation, receiver: Receiver) -> Events:
    """Compare what happened with what arrived, when the load is over."""
    # What happens between the two is waiting by the second.
    happened = [about for (about,) in installation.rows(_HAPPENED)]
    waiting = {about for (about,) in installation.rows(_WAITING)}
    return compare(happened, waiting, list(receiver.heard))


def compare(happened: Iterable[str], waiting: Set[str], heard: Iterable[Heard]) -> Events:
    """
    Args:
        happened, waiting: The ids of changes and minings.
        heard: All deliveries, also those that were answered with an error.
    """
    arrived: defaultdict[str, set[str]] = defaultdict(set)
    changes, again = set(), 0
    for each in heard:
        event = each.json
        about, message = event["data"][_SUBJECTS[event["type"]]], each.headers["webhook-id"]
        if event["type"] == CHANGED:
            changes.add(about)
        if each.reply == 204:
            again += message in arrived[about]
            arrived[about].add(message)
    return Events(
        arrived=len(arrived),
        again=again,
        lost=sorted(set(happened) - set(arrived) - waiting),
        doubled=sorted(about for about in changes if len(arrived[about]) > 1),
    )

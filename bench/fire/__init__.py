"""One run: inject faults into a Loci under load, then compare its messages with the ledger, and its
events with those that a webhook received.

Each change of a fact and each mining is delivered, a change under one id. Delivery is at least
once: the same event may arrive again, under the same id. A change that arrives under two ids is
doubled. What neither arrived nor waits to be sent is lost.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from bench.fire import surroundings
from bench.fire.faults import (
    AT_ONCE,
    BY_CLOCK,
    FAULTS,
    IN_UPGRADE,
    ON_DISK,
    Fault,
    Ground,
    Missed,
)
from bench.fire.installation import Installation, NotStarted, wait_until
from bench.fire.interrupted import INTERRUPTED
from bench.fire.load import Client, Load
from bench.fire.proof import Comparison, Injected, Readers, Watch, there_in
from bench.fire.surroundings import own_clock, own_disk
from bench.metrics import percentile
from bench.model_server import ModelServer
from bench.stub_servers import Heard, Receiver

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


# Seconds: how long a fault lasts, the pause before the next one, and the most that is waited for.
HELD_S = (1.0, 5.0)
PAUSE_S = (0.3, 2.0)
STEADY_S = 120
DRAINED_S = 300
NO_DISK = "Without root no small disk can be had: a full and a read-only one were left out."
NO_CLOCK = "Without a C compiler (cc) no clock can jump: its jumps were left out."
NO_BEFORE = "Without --before no older version ran beside."
# How often a fault is tried that finds nothing to break.
TRIES = 4
EVERYTHING = {**FAULTS, **INTERRUPTED, **ON_DISK, **BY_CLOCK, **IN_UPGRADE}
# Of faults that have these words there are many; each other one is the only one of its sort.
_SORTS = (" killed", " stopped for a while", "model ")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """
    Attributes:
        record: The line of the log.
        findings: What is wrong, in words; empty if nothing is.
    """

    record: dict[str, Any]
    findings: list[str]


def fire(
    folder: Path,
    *,
    seed: int,
    faults: int | None,
    say: Say,
    before: Path | None = None,
    only: Collection[str] = (),
) -> Ended:
    """
    Args:
        folder: An empty one for the installation.
        faults: How many; one of each kind where that is None.
        before: The folder of an older version, whose worker is to run beside.
        only: Names of the faults, all unless given.

    Raises:
        NotStarted: Loci does not start or stop.
    """
    began = time.monotonic()
    draw = random.Random(seed)  # noqa: S311 - which faults come when, no secret.
    clock = own_clock(folder)
    with ModelServer() as model, Receiver() as receiver, own_disk(folder / "disk") as disk:
        surroundings.recover(model)
        possible, notes = _possible(has_disk=bool(disk), has_clock=bool(clock), before=before)
        names = [name for name in possible if not only or name in only]
        if not names:
            raise NotStarted(" ".join(["None of these faults can be done here.", *notes]))
        dealt = schedule(draw, faults or len(names), names)
        environment = _settings(model)
        # Only where it is to jump: asking another clock costs time.
        if clock and set(dealt) & set(BY_CLOCK):
            environment |= clock.environment()
        installation = Installation(folder / "disk" / "home", environment, folder / "run.log")
        try:
            link = installation.start()
            with closing(Load(installation.address, key_of(installation), link)) as load:
                subscribe(load, load.another_program(), receiver)
                ground = Ground(installation, model, receiver, load, draw, disk, clock, before)
                ended = _prove(ground, dealt, say)
            installation.stop()
        finally:
            installation.kill()
    took_s = round(time.monotonic() - began)
    return replace(ended, record={"seed": seed, "took_s": took_s, "notes": notes, **ended.record})


def schedule(draw: random.Random, number: int, names: Sequence[str]) -> list[str]:
    """So many faults: all kinds in a random order, and then again.

    Where not all kinds fit in, the only one of a sort is there before a second one of another.
    """
    dealt: list[str] = []
    while number - len(dealt) >= len(names):
        dealt += draw.sample(names, len(names))
    some: Counter[str] = Counter()
    ranks = {}
    for name in draw.sample(names, len(names)):
        sort = next((words for words in _SORTS if words in name), name)
        ranks[name] = some[sort]
        some[sort] += 1
    last = sorted(ranks, key=ranks.__getitem__)[: number - len(dealt)]
    return dealt + draw.sample(last, len(last))


def _possible(
    *, has_disk: bool, has_clock: bool, before: Path | None
) -> tuple[dict[str, Fault], list[str]]:
    """The faults that can be done here, and a sentence for each kind that cannot."""
    kinds = (
        (has_disk, ON_DISK, NO_DISK),
        (has_clock, BY_CLOCK, NO_CLOCK),
        (before is not None, IN_UPGRADE, NO_BEFORE),
    )
    possible = {**FAULTS, **INTERRUPTED}
    for is_there, kind, _ in kinds:
        possible |= kind if is_there else {}
    return possible, [note for is_there, _, note in kinds if not is_there]


def _prove(ground: Ground, dealt: list[str], say: Say) -> Ended:
    """Inject the faults, then hold what is there to what was acknowledged."""
    record = _under_fire(ground, dealt, say)
    load, audit = ground.load, _audit(ground.installation)
    comparison = load.ledger.compare(there_in(ground.installation))
    events = events_of(ground.installation, ground.receiver)
    record |= comparison.counts() | events.counts() | load.ledger.states()
    record |= {"refused": len(load.wrong), "damaged": len(ground.damaged)}
    record |= {"audit_failed": audit["failed"], "audit_checks": audit["checks"]}
    findings = [*_in_words(comparison, audit), *events.examples(), *load.wrong, *ground.damaged]
    return Ended(record, findings)


def _settings(model: ModelServer) -> dict[str, str]:
    return {
        "LOCI_LLM_PROVIDER": model.base_url,
        "LOCI_LLM_MODEL": "scripted",
        "LOCI_LLM_API_KEY": "none",
        "LOCI_LLM_MAX_RETRIES": "1",
        "LOCI_API_RATE": "",
        # So that what is said becomes work within the run.
        "LOCI_MINE_AFTER_S": "2",
    }


def key_of(installation: Installation) -> str:
    """A new key with every right."""
    issued = installation.command("api_key", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return issued.communicate()[0].decode().split()[-1]


def _under_fire(ground: Ground, dealt: list[str], say: Say) -> dict[str, Any]:
    load = ground.load
    readers = Readers((load.another_program().ask, load.another_program().ask))
    watch = Watch(ground.installation, load.ledger)
    missed: list[dict[str, str]] = []
    began = time.time()
    with readers.asking(), watch.looking():
        with load.under_way():
            _wait_for_readers(readers, time.time())
            for number, name in enumerate(dealt, start=1):
                time.sleep(ground.draw.uniform(*PAUSE_S))
                for what in _inject(ground, name, readers, watch):
                    load.check()
                    say(f"{number}/{len(dealt)} {name}: {what}")
                    if isinstance(what, Missed):
                        missed.append({"fault": name, "why": str(what)})
        _drain(watch)
    _settle(watch.faults, readers)
    return _figures(watch.faults, began) | {
        "missed": len(missed),
        "never_hit": len(dealt) - len(watch.faults),
        "misses": missed,
        "answers": load.answers(),
        "exports": load.exports,
        "readers": readers.count(),
    }


def _inject(
    ground: Ground, name: str, readers: Readers, watch: Watch
) -> Iterator[Injected | Missed]:
    """Try it until it hits, a few times at most; what was missed is no fault."""
    for _ in range(TRIES):
        try:
            injected = _once(ground, name, watch)
        except Missed as missed:
            yield missed
            continue
        _wait_for_readers(readers, injected.ended)
        injected.readers_s = readers.recovered_in(injected, time.time())
        yield injected
        return


def _once(ground: Ground, name: str, watch: Watch) -> Injected:
    """
    Raises:
        Missed: There was nothing to break.
    """
    injected = Injected(name, began=time.time())
    with EVERYTHING[name](ground) as injected.under_way:
        if name in AT_ONCE or name in INTERRUPTED:
            # Before the end of the block, which may take its time.
            injected.ended = time.time()
            watch.faults.append(injected)
        else:
            time.sleep(ground.draw.uniform(*HELD_S))
    if not injected.ended:
        injected.ended = time.time()
        watch.faults.append(injected)
    return injected


def _wait_for_readers(readers: Readers, since: float) -> None:
    wait_until(lambda: readers.are_steady(since), STEADY_S)


def _drain(watch: Watch) -> None:
    """What is unfinished when the load ends gets its time; what is not done by then is reported."""
    last = Injected("end of the load", began=time.time(), ended=time.time())
    watch.faults.append(last)
    wait_until(watch.all_done, DRAINED_S, every_s=0.5)
    watch.faults.remove(last)


def _settle(faults: list[Injected], readers: Readers) -> None:
    for fault, following in zip(faults, [*faults[1:], None], strict=True):
        until = following.began if following else time.time()
        fault.readers_s = readers.recovered_in(fault, until)


def _figures(faults: list[Injected], began: float) -> dict[str, Any]:
    """
    Args:
        began: When the load did.
    """
    done = [each.done_s for each in faults if each.done_s is not None]
    readers = [each.readers_s for each in faults]
    return {
        "faults": len(faults),
        "readers_p50_s": round(percentile(readers, 0.5), 1),
        "readers_p95_s": round(percentile(readers, 0.95), 1),
        "unfinished_p50_s": round(percentile(done, 0.5), 1) if done else None,
        "unfinished_p95_s": round(percentile(done, 0.95), 1) if done else None,
        "never_finished": sum(each.done_s is None for each in faults),
        "injected": [each.as_json(since=began) for each in faults],
    }


def _audit(installation: Installation) -> dict[str, Any]:
    """Of all palaces, while Loci runs."""
    audit = installation.command("audit", "--all", "--json", stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(audit.communicate()[0])
    return found


def _in_words(comparison: Comparison, audit: dict[str, Any]) -> Iterator[str]:
    yield from comparison.examples()
    broken = [one for palace in audit["palaces"] for one in palace["findings"] if one["wrong"]]
    broken += [one for one in audit["installation"] if one["wrong"]]
    for one in broken:
        yield f"{one['check']}: {one['wrong']} wrong. {one['rule']} First: {one['examples']}"

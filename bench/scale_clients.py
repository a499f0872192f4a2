"""Measure concurrent recalls per second, with threads and with processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import repeat
from multiprocessing import get_context

from django.db import connection

from bench.scale_worker import start
from llm.embedding import embed
from palace.models import Palace
from palace.recall import RecallRequest, recall
from palace.storage.indexing.spaces import active_space, model_of

Ask = Callable[[int, Sequence[str]], None]


def in_threads(palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """As in one web server's process.

    Args:
        palaces: Their keys, one a client.
        questions: Each client asks all of them.
    """
    with ThreadPoolExecutor(len(palaces)) as clients:
        return _rates(clients, palaces, questions)


def in_processes(palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """As on a server with several of them; arguments as for `in_threads`."""
    settings = connection.settings_dict
    reached = settings["NAME"], settings["OPTIONS"]["options"]
    with ProcessPoolExecutor(
        len(palaces), get_context("spawn"), initializer=start, initargs=reached
    ) as clients:
        return _rates(clients, palaces, questions)


def _rates(clients: Executor, palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """Recalls a second; without embedding is what is left of the time when that is taken away.

    With all cores busy the times of the parts add up.
    """
    _busy(clients, _recall, palaces, questions[:5])
    whole = _busy(clients, _recall, palaces, questions)
    embedding = _busy(clients, _embed, palaces, questions)
    number = len(palaces) * len(questions)
    return {
        "recalls_per_s": round(number / (whole - embedding), 1),
        "with_embedding_per_s": round(number / whole, 1),
        "embedding_per_s": round(number / embedding, 1),
    }


def _busy(clients: Executor, ask: Ask, palaces: Sequence[int], questions: Sequence[str]) -> float:
    """Seconds until the last client is done."""
    started = time.perf_counter()
    list(clients.map(_ask_all, repeat(ask), palaces, repeat(questions)))
    return time.perf_counter() - started


def _ask_all(ask: Ask, palace: int, questions: Sequence[str]) -> None:
    try:
        ask(palace, questions)
    finally:
        connection.close()


def _recall(palace: int, questions: Sequence[str]) -> None:
    found = Palace.objects.get(pk=palace)
    for question in questions:
        recall(found, RecallRequest(question, recipe="default", rerank=False))


def _embed(palace: int, questions: Sequence[str]) -> None:
    owner, model = Palace.objects.get(pk=palace).owner_id, model_of(active_space())
    for question in questions:
        embed([question], model, owner_id=owner, cache=False)

"""Metrics for Prometheus at /metrics: counts and durations of all processes, and waiting work.

Each process counts in its own file below LOCI_HOME, and the web process that is asked adds all
files up, however many processes share the folder. Waiting work is looked up on request. No label
has an id, a name or anybody's words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import redis
from django.conf import settings
from django.db import DatabaseError, OperationalError
from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY, Collector

from isolation import row_access
from llm.database_writes import database_answers
from palace.models import Drawer, ImportJob, WebhookDelivery
from settings_app import task_queue

_REQUESTS = Counter("loci_requests", "Requests answered.", ["door", "method", "status"])
_REQUEST_SECONDS = Histogram("loci_request_seconds", "Until the answer was sent.", ["door"])
_TASKS = Counter("loci_tasks", "Background tasks that ended.", ["task", "state"])
_TASK_SECONDS = Histogram(
    "loci_task_seconds",
    "Durations of background tasks.",
    ["task"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
)
_STATES = {"SUCCESS", "FAILURE", "RETRY", "REJECTED", "IGNORED"}


def count_request(door: str, method: str, status: int, seconds: float) -> None:
    _REQUESTS.labels(door, method, str(status)).inc()
    _REQUEST_SECONDS.labels(door).observe(seconds)


def count_task(task: str, state: str | None, seconds: float) -> None:
    _TASKS.labels(task, state.lower() if state in _STATES else "other").inc()
    _TASK_SECONDS.labels(task).observe(seconds)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not settings.METRICS_TOKEN:
        raise Http404
    sent = request.headers.get("Authorization", "")
    if not constant_time_compare(sent, f"Bearer {settings.METRICS_TOKEN}"):
        said = "Send `Authorization: Bearer` and the value of LOCI_METRICS_TOKEN.\n"
        headers = {"WWW-Authenticate": "Bearer"}
        return HttpResponse(said, status=401, headers=headers, content_type="text/plain")
    registry = CollectorRegistry()
    registry.register(_OfAllProcesses())
    registry.register(_Waiting())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _OfAllProcesses(Collector):
    def collect(self) -> Iterable[Metric]:
        """The metrics of all processes; without files, as in tests, only of this one."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return [metric for metric in REGISTRY.collect() if metric.name.startswith("loci_")]
        files = [str(path) for path in Path(settings.METRICS_FOLDER).glob("*/*.db")]
        merged: list[Metric] = list(MultiProcessCollector.merge(files))  # type: ignore[no-untyped-call]
        return merged


class _Waiting(Collector):
    """Waiting work by kind: its amount, and the age of the oldest."""

    def collect(self) -> Iterable[Metric]:
        count = GaugeMetricFamily("loci_waiting", "Work that waits.", labels=["what"])
        age = GaugeMetricFamily(
            "loci_waiting_seconds", "How long the oldest has waited.", labels=["what"]
        )
        away = GaugeMetricFamily("loci_away", "Services that do not answer.", labels=["service"])
        for service, look, errors in _LOOKS:
            try:
                found = list(look())
            except errors:
                away.add_metric([service], 1)
                continue
            away.add_metric([service], 0)
            for what, waiting, oldest_s in found:
                count.add_metric([what], waiting)
                age.add_metric([what], oldest_s)
        return [count, age, away]


_Found = Iterable[tuple[str, int, float]]


def _in_queue() -> _Found:
    queues = {"tasks": task_queue.QUEUE, "long tasks": task_queue.BULK}
    for what, queue in queues.items():
        waiting, oldest_s = task_queue.waiting_tasks(queue)
        yield what, waiting, oldest_s or 0.0


def _in_database() -> _Found:
    if not database_answers():
        raise OperationalError
    now = timezone.now()
    rows = {
        "messages to mine": (Drawer.objects.unmined(), "filed_at"),
        "messages to read for facts": (Drawer.objects.unread(), "mined_at"),
        "imports": (ImportJob.objects.filter(status=ImportJob.Status.RUNNING), "progress_at"),
        "webhook deliveries": (
            WebhookDelivery.objects.filter(due_at__lte=now, webhook__disabled_at=None),
            "due_at",
        ),
    }
    with row_access.sweep("metrics"):
        for what, (waiting, since) in rows.items():
            found = waiting.aggregate(count=Count("pk"), oldest=Min(since))
            oldest = found["oldest"]
            yield what, found["count"], (now - oldest).total_seconds() if oldest else 0.0


_LOOKS: list[tuple[str, Callable[[], _Found], type[Exception]]] = [
    ("redis", _in_queue, redis.RedisError),
    ("database", _in_database, DatabaseError),
]

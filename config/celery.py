"""The task queue: Celery on Redis, and the timetable of its periodic tasks.

Tasks are safe to repeat, so they are acknowledged late.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from celery import Celery, Task, signals
from celery.exceptions import TimeLimitExceeded
from django.conf import settings

from isolation import row_access
from settings_app import request_id, task_queue

# Tasks that run so often that their log lines would hide the others.
OFTEN = (
    "palace.tasks.deliver_webhooks",
    "palace.tasks.take_up_unfinished",
    "chat.tasks.take_up_conversations",
)

# Tasks that may take long, or of which one palace may queue many.
_LONG = {
    "config.tasks.back_up",
    *(
        f"palace.tasks.{name}"
        for name in (
            "compact_postings",
            "delete_closed_accounts",
            "dream_at_night",
            "dream_of",
            "embed_missing",
            "empty_trash",
            "import_chats",
            "prune_embedding_cache",
            "purge_trash",
            "rebuild_old_postings",
            "reembed",
            "tidy_vectors",
        )
    ),
}

# Celery warns of root because pickled messages can run code. Ours are JSON.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Celery would run Django's checks, which import every page, and ignore what they find.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")


class TaskWithoutAccess(Task[Any, Any]):
    """A task that begins without access to rows, and opens its own."""

    abstract = True

    @property
    def time_limit(self) -> float:  # type: ignore[override]
        """Seconds after which the worker kills the process that runs it, even a stopped one."""
        return settings.LONG_TASK_LIMIT_S if self.name in _LONG else settings.TASK_LIMIT_S

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with row_access.deny_all():
            return super().__call__(*args, **kwargs)


_path = list(sys.path)
app = Celery("loci", task_cls=TaskWithoutAccess)
# Celery puts the working folder before all others; a `config` or `palace` there would be imported.
sys.path[:] = _path
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


_notes_clock = partial(task_queue.note_running, task_queue.CLOCK)


def route(name: str, *_arguments: Any, **_more: Any) -> dict[str, str] | None:
    """The queue of a task whose caller names none."""
    return {"queue": task_queue.BULK} if name in _LONG else None


signals.before_task_publish.connect(task_queue.date_task)
signals.before_task_publish.connect(request_id.add_to_task)


@signals.heartbeat_sent.connect
def _note_worker(**_signal: Any) -> None:
    task_queue.note_running(task_queue.WORKER)
    # While no worker takes long tasks, imports wait, and the other queue does not show it.
    if task_queue.BULK in app.amqp.queues.consume_from:
        task_queue.note_running(task_queue.LONG_WORKER)


# State of the tasks that run in this process, by their ids.
_started_at: dict[str, float] = {}


@signals.task_prerun.connect
def _begin_task(task_id: str = "", task: Task[Any, Any] | None = None, **_signal: Any) -> None:
    """Set the id in the task's log lines: that of the request that queued it, or its own."""
    if task is None:
        return
    # Without a worker a task has its headers elsewhere.
    headers = task.request.headers or {}
    sent = task.request.get(request_id.OF_TASK) or headers.get(request_id.OF_TASK)
    request_id.set_current(sent or task_id)
    _started_at[task_id] = time.perf_counter()


@signals.task_postrun.connect
def _end_task(
    task_id: str = "", task: Task[Any, Any] | None = None, state: str = "", **_signal: Any
) -> None:
    from config import metrics  # noqa: PLC0415 - models can be imported only after the setup.

    request_id.set_current("")
    if task is not None:
        seconds = time.perf_counter() - _started_at.pop(task_id, time.perf_counter())
        metrics.count_task(task.name, state, seconds)


@signals.task_failure.connect
def _repeat_timed_out(
    sender: Task[Any, Any] | None = None,
    exception: Exception | None = None,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    **_signal: Any,
) -> None:
    """Queue a task again that was killed at its time limit, unless a sweep finds its work.

    Celery drops it, though it queues again what dies in any other way.
    """
    if isinstance(exception, TimeLimitExceeded) and sender and sender.reject_on_worker_lost:
        sender.apply_async(tuple(args), kwargs)


@signals.beat_init.connect
def _watch_clock(**_signal: Any) -> None:
    """The clock publishes a task every few seconds."""
    signals.before_task_publish.connect(_notes_clock)


class Quiet(logging.Filter):
    """Filters the scheduler's and worker's lines about such tasks, except for errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.INFO or not record.name.startswith("celery"):
            return True
        message = record.getMessage()
        return not any(task in message for task in OFTEN)


HOUR_S = 3600
DAY_S = 24 * HOUR_S

TASKS: dict[str, tuple[str, float]] = {
    "resume conversations and replies": ("chat.tasks.take_up_conversations", 10),
    "resume unfinished work": ("palace.tasks.take_up_unfinished", 10),
    "deliver webhooks": ("palace.tasks.deliver_webhooks", 5),
    "embed missing vectors": ("palace.tasks.embed_missing", 60),
    "dream at night": ("palace.tasks.dream_where_it_is_night", HOUR_S),
    "purge expired trash": ("palace.tasks.purge_trash", DAY_S),
    "apply retention rules": ("palace.tasks.keep_by_rules_everywhere", DAY_S),
    "delete closed accounts": ("palace.tasks.delete_closed_accounts", 60),
    "delete expired sessions": ("settings_app.tasks.forget_ended_sessions", DAY_S),
    "delete expired codes of apps": ("api.tasks.forget_unused", DAY_S),
    "delete old audit lines": ("settings_app.tasks.forget_old_audit_lines", DAY_S),
    "delete old records of what was sent": ("settings_app.tasks.forget_old_sent", DAY_S),
    "delete old answers to programs": ("palace.tasks.forget_answered_writes", DAY_S),
    "delete working memory of deleted palaces": ("palace.tasks.forget_deleted_palaces", DAY_S),
    "delete old webhook deliveries": ("palace.tasks.forget_old_deliveries", DAY_S),
    "tidy the vector store": ("palace.tasks.tidy_vectors", DAY_S),
    "delete old cached vectors": ("palace.tasks.prune_embedding_cache", DAY_S),
}


# Seconds after which a waiting task is dropped, as its next one comes. The tasks say the same; the
# clock does not import them.
EXPIRES_S = {
    "chat.tasks.take_up_conversations": 60,
    "config.tasks.back_up": 6 * HOUR_S,
    "palace.tasks.delete_closed_accounts": 60,
    "palace.tasks.deliver_webhooks": 5,
    "palace.tasks.dream_where_it_is_night": 60,
    "palace.tasks.embed_missing": HOUR_S,
    "palace.tasks.keep_by_rules_everywhere": 60,
    "palace.tasks.take_up_unfinished": 60,
}


def timetable(back_up_every_h: float) -> dict[str, dict[str, Any]]:
    """The schedule in the format of Celery beat.

    Args:
        back_up_every_h: Hours from backup to backup; 0 for none.
    """
    tasks = dict(TASKS)
    if back_up_every_h:
        tasks["back up"] = ("config.tasks.back_up", back_up_every_h * HOUR_S)
    return {
        title: {"task": name, "schedule": every_s, "options": _options(name)}
        for title, (name, every_s) in tasks.items()
    }


def _options(name: str) -> dict[str, float]:
    return {"expires": EXPIRES_S[name]} if name in EXPIRES_S else {}

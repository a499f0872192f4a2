"""The health check for probes: without sign-in and without personal data.

It writes: what can be read may still be full. The database writes a temporary file, which lies on
the disk of its data; Redis a value that expires; and this machine's disk is asked for its space.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from language.errors import VectorStoreAway
from llm.database_writes import database_answers
from llm.embedding.model_build import is_built
from palace.storage import check_vector_store
from settings_app import task_queue

OK, AWAY, FULL, LATE = "ok", "away", "full", "late"
DEGRADED, UNAVAILABLE = "degraded", "unavailable"
_MORE = f"`{settings.MANAGE} doctor` says more."
REASONS = {
    "database": "The database does not answer, its disk is full, or it takes no writes.",
    "redis": "Redis does not answer, or cannot write.",
    "embedder": f"The embedding model is not built; {_MORE}",
    "disk": "The disk of LOCI_HOME or of temporary files is full.",
    "vector_store": "The store of facts' vectors does not answer: facts are found by their words; "
    f"{_MORE}",
}
# What the database does not have enough of: disk, or the space that it may use of it.
_SHORT_OF_SPACE = ("53100", "53400")
# More rows than this much memory takes, so that they are written to disk.
_WRITE = "SET LOCAL work_mem = '64kB'; SELECT count(*) FROM generate_series(1, 10000)"
# On, for one, where another server has become the primary.
_READ_ONLY = "SELECT current_setting('transaction_read_only') = 'on'"
# Below it, uploads and other large bodies fail; in bytes.
LEAST_FREE = 64 << 20
_EXPIRES_S = 60


@never_cache
@require_safe
def health(_request: HttpRequest) -> JsonResponse:
    """`status` is `ok`, `degraded` (pages still answer) or, with 503, `unavailable`."""
    parts = _parts()
    status = _status(parts)
    return JsonResponse({"status": status, **parts}, status=503 if status == UNAVAILABLE else 200)


@never_cache
@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    """Whether this process answers; nothing else is asked."""
    return JsonResponse({"status": OK})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """As `health`, with all that it needs beside, and the reason for each part that is not well.

    Those are worker, clock and queue, and the store of facts' vectors if it is not Postgres.
    """
    parts = _parts()
    if settings.VECTOR_STORE != "postgres":
        parts["vector_store"] = _vector_store()
    reasons = {name: REASONS[name] for name, state in parts.items() if state in {AWAY, FULL}}
    # Redis that is away is in the reasons, and is not waited for once more.
    with suppress(redis.RedisError):
        for name, part in task_queue.background_parts() if parts["redis"] != AWAY else ():
            parts[name] = OK if part.well else LATE
            if not part.well:
                reasons[name] = part.report
    status = _status(parts)
    return JsonResponse(
        {"status": status, "parts": parts, "reasons": reasons},
        status=503 if status == UNAVAILABLE else 200,
    )


def _parts() -> dict[str, str]:
    return {
        "database": _database(),
        "redis": _redis(),
        "embedder": _embedder(),
        "disk": _disk(),
    }


def _status(parts: dict[str, str]) -> str:
    if parts["database"] == AWAY:
        return UNAVAILABLE
    return DEGRADED if {AWAY, FULL, LATE} & set(parts.values()) else OK


def _database() -> str:
    if not database_answers():
        return AWAY
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_WRITE)
            cursor.execute(_READ_ONLY)
            if cursor.fetchone() == (True,):
                return FULL
    except DatabaseError as error:
        return FULL if getattr(error.__cause__, "sqlstate", None) in _SHORT_OF_SPACE else AWAY
    return OK


def _redis() -> str:
    try:
        cache.set("health", 1, _EXPIRES_S)
    except redis.ResponseError:
        # It responds, and refuses to write: out of memory, or its disk is full.
        return FULL
    except redis.RedisError:
        return AWAY
    return OK


def _disk() -> str:
    """Where large bodies, imports and logs go."""
    folders = {Path(tempfile.gettempdir()), settings.LOCI_HOME}
    free = min(shutil.disk_usage(folder).free for folder in folders if folder.exists())
    return OK if free >= LEAST_FREE else FULL


def _vector_store() -> str:
    try:
        check_vector_store()
    except VectorStoreAway:
        return AWAY
    return OK


def _embedder() -> str:
    """A local one is ready once built. A remote one is not called, as calls may cost money."""
    if settings.EMBEDDING_PROVIDER != "local":
        return "remote"
    return OK if is_built(settings.MODELS_DIR, settings.EMBEDDING_MODEL) else AWAY

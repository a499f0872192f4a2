"""The health check for probes: without sign-in and without personal data."""

from __future__ import annotations

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from llm.embedding.build import is_built

OK, AWAY = "ok", "away"


@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """`status` is `ok`, `degraded` (pages still answer) or, with 503, `unavailable`."""
    database, broker, embedder = _database(), _redis(), _embedder()
    if database == AWAY:
        status = "unavailable"
    else:
        status = "degraded" if AWAY in (broker, embedder) else OK
    state = {"status": status, "database": database, "redis": broker, "embedder": embedder}
    return JsonResponse(state, status=503 if database == AWAY else 200)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return AWAY
    return OK


def _redis() -> str:
    try:
        cache.get("health")
    except redis.RedisError:
        return AWAY
    return OK


def _embedder() -> str:
    """A local one is ready once built. A remote one is not called, as calls may cost money."""
    if settings.EMBEDDING_PROVIDER != "local":
        return "remote"
    return OK if is_built(settings.MODELS_DIR, settings.EMBEDDING_MODEL) else AWAY

"""`manage.py doctor`: check each part that Loci needs, and say what to do if one fails."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis
from django.conf import settings
from django.core.cache import cache
from django.core.management.base import BaseCommand

from config import embedded, environment, preconditions
from config.command_line import DISK_ERRORS
from language.errors import VectorStoreAway
from llm import embedding, providers
from llm.embedding import model_build
from llm.embedding.local import LocalEmbedder
from llm.embedding.local_models import LOCAL_MODELS
from llm.errors import EmbedderMisconfigured, ModelRefused
from palace.storage import check_vector_store, server_store
from settings_app import task_queue

Check = Callable[[], str]


ONLY_READS = "it takes no writes: it, or its server, is set to reading only."
# Seconds that a language model has for taking a connection.
_ANSWERS_S = 5
# What is written to see whether there is room for it.
_WRITTEN_BYTES = 1 << 20


class Problem(Exception):
    """A check failed; the message says what to do."""


class Command(BaseCommand):
    help = "Check what Loci needs: data folder, disk, services, models. Nothing is changed."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, **options: Any) -> None:
        rows = list(_checked())
        if options["json"]:
            self.stdout.write(json.dumps({name: {"ok": ok, "is": is_} for name, ok, is_ in rows}))
        else:
            width = max(len(name) for name, _, _ in rows)
            for name, ok, is_ in rows:
                self.stdout.write(f"{'ok   ' if ok else 'WRONG'}  {name:<{width}}  {is_}")
        if not all(ok for _, ok, _ in rows):
            raise SystemExit(1)


def _checked() -> Iterator[tuple[str, bool, str]]:
    """Each part, whether it works, and its state or what to do."""
    for name, check in CHECKS.items():
        try:
            yield name, True, check()
        except (Problem, embedded.ServiceError) as error:
            yield name, False, str(error)
        except OSError as error:
            yield name, False, f"{DISK_ERRORS.get(error.errno or 0, 'it fails')} ({error})."


def _version() -> str:
    return f"Loci {settings.VERSION}, Python {platform.python_version()}, {platform.platform()}"


def _running() -> str:
    address = preconditions.address_of_running(settings.EMBEDDED.home)
    return f"at {address}" if address else f"no; `{environment.START}` starts it"


def _data_folder() -> str:
    home = settings.LOCI_HOME
    if not home.exists():
        return f"{home} (made at the first start)"
    if os.statvfs(home).f_flag & os.ST_RDONLY:
        raise Problem(f"{home} is on a disk that is read-only; set LOCI_HOME to another folder.")
    if not os.access(home, os.W_OK):
        raise Problem(f"{home} cannot be written; run Loci as the user it belongs to.")
    # A disk may be full, or above its quota, for this user alone.
    with tempfile.TemporaryFile(dir=home) as file:
        file.write(bytes(_WRITTEN_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return str(home)


def _disk() -> str:
    folder = settings.LOCI_HOME
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < embedded.MIN_FREE_BYTES:
        raise Problem(
            f"only {free // 2**20} MB are free; free some space, or set LOCI_HOME to another disk."
        )
    return f"{free / 2**30:.1f} GB free"


def _database() -> str:
    if not settings.USES_EMBEDDED_SERVICES:
        reason = preconditions.why_database_fails(settings.DATABASE)
        if reason:
            raise Problem(f"it does not answer ({reason}). Start it, or correct DATABASE_URL.")
        if preconditions.only_reads(settings.DATABASE):
            raise Problem(f"{ONLY_READS} If another is the primary now, correct DATABASE_URL.")
        return "your own, answers"
    if not settings.EMBEDDED.postgres_data.exists():
        embedded.check_installed()
        return "PostgreSQL and Redis are installed; made at the first start"
    with embedded.services(settings.EMBEDDED):
        if reason := preconditions.why_database_fails(settings.DATABASE):
            raise Problem(f"Postgres runs, but Loci's database cannot be opened ({reason}).")
        if preconditions.only_reads(settings.DATABASE):
            raise Problem(ONLY_READS)
        with psycopg.connect(settings.EMBEDDED.database_url) as connection:
            version = connection.info.server_version // 10_000
        _check_redis(settings.EMBEDDED.redis.why_silent() or f"`{environment.START}` starts it.")
        return f"PostgreSQL {version} and Redis answer"


def _check_redis(remedy: str) -> None:
    """Write to it: what can be read may still be full."""
    try:
        cache.set("doctor", 1, timeout=1)
    except redis.ResponseError as error:
        raise Problem(f"Redis refuses to write ({error}): give it memory or disk.") from None
    except redis.RedisError as error:
        raise Problem(f"Redis does not answer ({error}). {remedy}") from None


def _vector_store() -> str:
    store = server_store()
    if store.kind == "postgres":
        return "in the database"
    if store.folder and not Path(store.folder).exists():
        return f"{store.kind}: {store.folder} is made with the first fact"
    try:
        return f"{check_vector_store()} answers"
    except VectorStoreAway as error:
        raise Problem(
            f"{error} It is at {error.where}; start it, or correct LOCI_VECTOR_STORE_URL. "
            "Until then facts are found by their words."
        ) from None


def _embedder() -> str:
    model = embedding.deployment_model()
    try:
        embedding.check(model)
    except EmbedderMisconfigured as error:
        raise Problem(str(error)) from None
    if not model.is_local:
        return f"{model.name} at {providers.shown(model.provider)}"
    if model_build.is_built(settings.MODELS_DIR, model.name):
        try:
            local = LOCAL_MODELS[model.name]
            for file in model_build.model_files(local):
                LocalEmbedder(settings.MODELS_DIR / model.name, local, file)
        except EmbedderMisconfigured as error:
            raise Problem(f"{error} They are built again at the next start.") from None
        return f"{model.name}, in {settings.MODELS_DIR}"
    source = "is installed" if LOCAL_MODELS[model.name].installed_folder() else "is fetched (90 MB)"
    return f"{model.name}: not built yet; its wheel {source} at the first start"


def _language_model() -> str:
    try:
        endpoint = providers.deployment_endpoint()
    except ModelRefused as error:
        raise Problem(str(error)) from None
    if endpoint is None:
        return "none here (optional); people may choose their own"
    address = urlsplit(endpoint.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), _ANSWERS_S).close()
    except OSError as error:
        raise Problem(
            f"{endpoint} does not answer ({error}). Start it, or correct LOCI_LLM_PROVIDER."
        ) from None
    return f"{endpoint}, answers"


def _background() -> str:
    if not settings.USES_EMBEDDED_SERVICES:
        _check_redis("Start it, or correct REDIS_URL.")
    elif not preconditions.address_of_running(settings.EMBEDDED.home):
        return "starts with Loci"
    try:
        parts = [part for _, part in task_queue.background_parts()]
    except redis.RedisError:
        raise Problem("It cannot be told while Redis does not answer.") from None
    wrong = [part.report for part in parts if not part.well]
    if wrong:
        raise Problem(" ".join(wrong))
    return " ".join(part.report for part in parts)


CHECKS: dict[str, Check] = {
    "version": _version,
    "running": _running,
    "data folder": _data_folder,
    "disk": _disk,
    "database": _database,
    "facts' vectors": _vector_store,
    "background work": _background,
    "embedding model": _embedder,
    "language model": _language_model,
}

"""A run: ingest conversations through mining in a database schema of its own, ask questions through
recall. User data is never touched.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from django.db import connection
from psycopg import sql
from tqdm import tqdm

import llm.embedding
from bench.datasets import Case, Question
from bench.logs import BadRun, Log
from isolation import row_access
from language.storable import storable_id
from palace.mining.pipeline import mine_many
from palace.models import Drawer, Palace
from palace.recall import Hit, RecallRequest, recall
from palace.recall.recipes import recipe_named
from palace.storage import fill_missing_vectors
from settings_app.models import MemorySettings

# Sessions take the place of their best turn, so more turns than the deepest cut are needed.
TOP_K = 100


def cpu_ms() -> float | None:
    """Time on a core so far, of this process's threads and of the server's for our connection."""
    server = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    try:
        waited = int(server.read_text().split()[0])
    except OSError:  # On another machine.
        return None
    return time.process_time() * 1000 + waited / 1e6


@contextmanager
def own_schema(name: str, *, keep: bool, data: str = "") -> Iterator[None]:
    """Use schema `name` within the block.

    Dropped at the end unless `keep`; a schema kept by an earlier run, or left by one that was
    killed, is used as it is.

    Args:
        data: Distinguishes data sets.

    Raises:
        CommandError: the schema holds other data.
    """
    _create(name, data)
    options = connection.settings_dict["OPTIONS"]
    before = options["options"]
    options["options"] = f"{before} -c search_path={name},public"
    connection.close()
    try:
        call_command("migrate", verbosity=0)
        _check_all_tables_are_in(name)
        yield
    finally:
        connection.close()
        options["options"] = before
        if not keep:
            drop_schema(name)


@contextmanager
def alone_in(name: str) -> Iterator[None]:
    """Lock schema `name` against other processes, on any machine, during the block.

    The lock has a connection of its own: the other is reopened within `own_schema`.

    Raises:
        CommandError: another process is using it.
    """
    beside = connection.copy()
    try:
        with beside.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [f"in {name}"])
            if cursor.fetchone() != (True,):
                raise CommandError(
                    f"Another process works in schema {name}; wait for its end, or choose another "
                    "--run-id."
                )
            try:
                yield
            finally:
                # Unlock explicitly: a closed connection lets go when its server process gets to it,
                # which may be after the next step has asked.
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [f"in {name}"])
    finally:
        beside.close()


def drop_schema(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


def schemas(prefix: str) -> list[str]:
    """The existing schemas whose names begin with this."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) ORDER BY 1", [prefix]
        )
        return [name for (name,) in cursor.fetchall()]


def _create(name: str, data: str) -> None:
    with connection.cursor() as cursor:
        # Types are shared by all schemas: the first one to create the extension creates it for all.
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
        cursor.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [name])
        [holds] = cursor.fetchone()
        if holds not in (None, data):
            raise CommandError(
                f"Schema {name} holds other data, kept by an earlier run; choose another --run-id, "
                "or throw it away with --fresh."
            )
        cursor.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(name), data))
        # Without a list of its own, `migrate` would read the public one and find all done.
        cursor.execute(
            f"""
            CREATE TABLE IF NOT EXISTS "{name}".django_migrations (
                id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                app varchar(255) NOT NULL, name varchar(255) NOT NULL, applied timestamptz NOT NULL
            )
            """
        )


def _check_all_tables_are_in(name: str) -> None:
    """A table that is missing here would be looked up among the user's own."""
    tables = [model._meta.db_table for model in apps.get_models()]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t FROM unnest(%s::text[]) t"
            " WHERE to_regclass(quote_ident(%s) || '.' || quote_ident(t)) IS NULL",
            [tables, name],
        )
        elsewhere = [table for (table,) in cursor.fetchall()]
    if elsewhere:
        raise CommandError(f"Schema {name} lacks {', '.join(elsewhere)}; nothing was measured.")


def take_in(case: Case, log: Log) -> Palace:
    """File and mine what earlier runs have not; record the time.

    Raises:
        EmbedderUnavailable: what lacks a vector could not be found; doing it again goes on.
    """
    palace = palace_of(case)
    _choose_model(palace, MemorySettings.NO_MODEL)
    started = time.perf_counter()
    here = _taken_in(palace)
    new = [each for each in case.transcripts if storable_id(each.external_id) not in here]
    with _cached_messages():
        mine_many(palace, tqdm(new, desc=f"{case.id} in", leave=False, disable=None))
        # What an embedder at fault has left; elsewhere a task sees to it.
        while fill_missing_vectors():
            pass
    if new or not _is_logged(palace, case, log):
        log.append(
            {
                "case": case.id,
                "palace": str(palace.uuid),
                "messages": Drawer.objects.within(palace).count(),
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
    return palace


@contextmanager
def _cached_messages() -> Iterator[None]:
    """Embed conversations that people of a data set share only once."""
    before = settings.EMBEDDING_CACHES_MESSAGES
    settings.EMBEDDING_CACHES_MESSAGES = True
    try:
        yield
    finally:
        settings.EMBEDDING_CACHES_MESSAGES = before


def palace_taken_in(case: Case, log: Log, how: str) -> Palace:
    """The palace of a completely ingested case.

    Args:
        how: The command that ingests it.

    Raises:
        BadRun: it is not ingested; says what to do.
    """
    if not is_taken_in(case, log):
        raise BadRun(f"{case.id} is not taken in, or only in part; run `{how}` first.")
    return palace_of(case)


def ask(
    case: Case, palace: Palace, recipe: str, asked: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A log line for each question that is not in `asked`."""
    questions = [question for question in case.questions if question.id not in asked]
    prepare(palace, recipe)
    for question in tqdm(questions, desc=f"{case.id} ?", leave=False, disable=None):
        started = time.perf_counter()
        found = recall(
            palace,
            RecallRequest(
                question.text, top_k=TOP_K, now=question.now, recipe=recipe, rerank=reranks(recipe)
            ),
        )
        latency_ms = (time.perf_counter() - started) * 1000
        yield {
            **described(case, question),
            "hits": [_hit(hit) for hit in found.hits],
            "latency_ms": round(latency_ms, 2),
            "recollection": str(found.uuid),
            "notes": list(found.notes),
        }


def reranks(recipe: str) -> bool:
    """Figures must not depend on an account, nor on its model, unless the recipe asks for one."""
    return bool(getattr(recipe_named(recipe), "rerank", False))


def prepare(palace: Palace, recipe: str) -> None:
    """Allow recall to use the operator's model, if the recipe reranks."""
    here = MemorySettings.OF_THIS_SERVER if reranks(recipe) else MemorySettings.NO_MODEL
    _choose_model(palace, here)


def _choose_model(palace: Palace, provider: str) -> None:
    """Ingest conversations with the local rules, ignoring the operator's model."""
    MemorySettings.objects.update_or_create(
        owner_id=palace.owner_id, defaults={"provider": provider}
    )


def described(case: Case, question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "case": case.id,
        **({"language": case.language} if case.language else {}),
        "type": question.type,
        "question": question.text,
        "now": question.now.isoformat() if question.now else None,
        "gold_turns": sorted(question.gold_turns),
        "gold_sessions": sorted(question.gold_sessions),
    }


def _hit(hit: Hit) -> dict[str, Any]:
    drawer = hit.drawer
    return {
        "session": drawer.conversation,
        "turn": f"{drawer.conversation}/{drawer.external_id}",
        "score": round(hit.score, 4),
        "signals": {name: round(share, 4) for name, share in hit.signals.items()},
    }


def palace_of(case: Case) -> Palace:
    """A user for each case."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=storable_id(case.id))
    return palace


def _taken_in(palace: Palace) -> set[str]:
    """The conversations that are filed and mined: filing is all or nothing."""
    drawers = Drawer.objects.within(palace)
    unmined = drawers.unmined().values("conversation")
    mined = drawers.exclude(conversation__in=unmined)
    return set(mined.values_list("conversation", flat=True).distinct())


def is_taken_in(case: Case, log: Log) -> bool:
    """Whether a case is completely ingested."""
    return _is_logged(palace_of(case), case, log)


def _is_logged(palace: Palace, case: Case, log: Log) -> bool:
    wanted = (case.id, str(palace.uuid))
    return any((line["case"], line["palace"]) == wanted for line in log.lines())


def code_of_recall() -> str:
    """A digest of the code and word lists of recall: a log must not mix two versions."""
    memory, embedding = settings.BASE_DIR / "palace", Path(llm.embedding.__path__[0])
    parts = [memory / part for part in ("mining", "models", "recall", "storage")]
    digest = hashlib.sha256()
    for folder in (*parts, embedding):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(folder)}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


class UnrestrictedCommand(BaseCommand):
    """What is measured, recall and mining, opens its palace by itself, as everywhere."""

    def execute(self, *args: Any, **options: Any) -> Any:
        # Threads and processes that ask begin without access to rows.
        before = row_access.current()
        row_access.allow_all_by_default()
        try:
            with row_access.maintenance():
                return super().execute(*args, **options)
        finally:
            if before == row_access.NO_ACCESS:
                row_access.deny_all_by_default()

"""What programs import before they do anything: seconds of each start, and memory for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

from config import celery
from tests.config.conftest import PROJECT

# What a worker imports: the tasks, after the models.
WORKER = "from config.celery import app; app.loader.import_default_modules()"
# The names that tasks are queued by, which do not change: workers of an older version may share the
# queue, and the queue outlives its workers.
TASKS = {
    "api.tasks": "forget_unused",
    "chat.tasks": "mine_conversation mine_proxied take_up_conversations",
    "config.tasks": "back_up",
    "palace.tasks": """
        compact_postings delete_closed_accounts deliver_webhooks dream_at_night dream_of
        dream_where_it_is_night embed_missing empty_trash forget_answered_writes
        forget_deleted_palaces forget_old_deliveries import_chats keep_by_rules
        keep_by_rules_everywhere learn_facts mine_room prune_embedding_cache purge_trash
        rebuild_old_postings reembed take_up_unfinished tidy_vectors write_episodes
    """,
    "settings_app.tasks": "forget_ended_sessions forget_old_audit_lines forget_old_sent",
}
PAGES = "import django.urls; django.urls.get_resolver().url_patterns"
# Each takes from .3 to 2 s of CPU to import, and up to 40 MB.
HEAVY = {"openai", "mcp", "onnxruntime", "dateparser", "config.urls"}


def imported_by(program):
    script = f"""
import sys, django
django.setup()
{program}
print(*sys.modules)
"""
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout.split()


@pytest.mark.some(1)
@pytest.mark.parametrize("program", ["", WORKER])
def test_a_program_that_shows_no_page_imports_no_heavy_library(program):
    imported = imported_by(program)
    assert "palace.models.hierarchy" in imported
    assert HEAVY.intersection(imported) == set()


@pytest.mark.exhaustive
def test_pages_and_apis_import_no_library_of_models_that_may_never_be_asked():
    imported = imported_by(PAGES)
    assert {"chat.views.messages", "api.openai.views"} <= set(imported)
    assert "openai" not in imported


def test_a_worker_has_each_task_under_the_name_that_it_is_queued_by():
    printed = imported_by(f"{WORKER}; print(*(f'task={{name}}' for name in app.tasks))")
    names = {word.removeprefix("task=") for word in printed if word.startswith("task=")}
    ours = {name for name in names if not name.startswith("celery.")}
    assert ours == {f"{start}.{name}" for start, ends in TASKS.items() for name in ends.split()}
    assert {name for name, _ in celery.TASKS.values()} | celery._LONG <= ours

"""What programs import before they do anything: seconds of each start, and memory for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.config.conftest import PROJECT

# What a worker imports: the task modules, after the models.
WORKER = "import config.tasks, palace.tasks, chat.tasks, settings_app.tasks"
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

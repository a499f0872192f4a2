"""What programs import before they do anything: seconds of each start, and memory for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.config.conftest import PROJECT

# What a worker imports: the task modules, after the models.
WORKER = "import config.tasks, palace.tasks, chat.tasks, settings_app.tasks"
# Each takes from .3 to 2 s of CPU to import, and up to 40 MB.
HEAVY = {"openai", "mcp", "onnxruntime", "dateparser", "config.urls"}


@pytest.mark.parametrize("program", ["", WORKER])
def test_a_program_that_shows_no_page_imports_no_heavy_library(program):
    script = f"""
import sys, django
django.setup()
{program}
print(*sys.modules)
"""
    command = [sys.executable, "-c", script]
    imported = subprocess.run(
        command, cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "palace.models.hierarchy" in imported
    assert HEAVY.intersection(imported) == set()

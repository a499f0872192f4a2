"""mem0's own client, unmodified, in the versions that docs/mem0.md names.

`make test-all` installs each with the few packages that it needs beside ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import mem0_calls
from bench.client_trials import MEM0_VERSIONS
from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT

LOCKS = sorted((Path(__file__).parent / "locks").glob("*.lock"))
CLIENTS = PROJECT / ".loci" / "clients"
TIMEOUT_S = 180


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("version", MEM0_VERSIONS)
def test_all_its_calls_work(owner, version):
    installed = CLIENTS / f"mem0-{version}"
    if not (installed / "installed").exists():
        pytest.skip("`make test-all` installs mem0's client.")
    _, key = issue(owner, "mem0", scopes=["read", "write", "admin"])
    with AsgiServer() as server:
        done = subprocess.run(
            [sys.executable, mem0_calls.__file__, server.url, key],
            env={**os.environ, "PYTHONPATH": str(installed), "MEM0_TELEMETRY": "False"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == version


def test_the_versions_that_the_page_names_are_tried():
    page = (PROJECT / "docs" / "mem0.md").read_text()
    assert all(version in page for version in MEM0_VERSIONS)
    assert {lock.stem for lock in LOCKS} == set(MEM0_VERSIONS)

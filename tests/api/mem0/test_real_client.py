"""mem0's own client, unmodified, in the versions that docs/mem0.md names.

`make test-all` installs each with the few packages that it needs beside ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT

LOCKS = sorted((Path(__file__).parent / "locks").glob("*.lock"))
CLIENTS = PROJECT / ".loci" / "clients"
TIMEOUT_S = 180
PROGRAM = Path(__file__).parent / "real_client.py"

pytestmark = [pytest.mark.exhaustive, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("version", [lock.stem for lock in LOCKS])
def test_all_its_calls_work(owner, version):
    installed = CLIENTS / f"mem0-{version}"
    if not (installed / "installed").exists():
        pytest.skip("`make test-all` installs mem0's client.")
    _, key = issue(owner, "mem0", scopes=["read", "write", "admin"])
    with AsgiServer() as server:
        done = subprocess.run(
            [sys.executable, PROGRAM, server.url, key],
            env={**os.environ, "PYTHONPATH": str(installed), "MEM0_TELEMETRY": "False"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == version
    assert "Lisbon" in found["added"]
    assert found["verbatim"] == ["Pier 3, beside the fish market."]
    assert "walnuts" in found["from parts"]
    assert "Lisbon" in found["searched"]
    assert {"ada", "bea"} <= set(found["users"])
    assert found["updated"] == "User lives in Porto"
    assert found["changes"] == ["ADD", "UPDATE"]
    assert found["of another"] == []
    assert found["by batch"] == "User lives in Faro"
    assert found["left"] == {"after batch_delete": 0, "after delete_all": 0}


def test_the_versions_that_the_page_names_are_tried():
    page = (PROJECT / "docs" / "mem0.md").read_text()
    assert all(lock.stem in page for lock in LOCKS)
    assert len(LOCKS) == 3

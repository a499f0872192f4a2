"""Real Postgres and Redis for the test run, in a folder that goes with it.

Loaded with `-p tests.services`, before anything reads the settings.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from config import embedded

PROJECT = Path(__file__).resolve().parent.parent
HOME = Path(tempfile.mkdtemp(prefix="loci-test-"))
_services = contextlib.ExitStack()

os.environ.pop("DATABASE_URL", None)
os.environ.pop("REDIS_URL", None)
for name in [name for name in os.environ if name.startswith("LOCI_")]:
    del os.environ[name]
os.environ["LOCI_HOME"] = str(HOME)
os.environ["LOCI_MODELS_DIR"] = str(PROJECT / ".loci" / "models")
os.environ["LOCI_EMBEDDED_FSYNC"] = "off"
_services.enter_context(embedded.services(embedded.Layout(HOME)))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _services.close()
    shutil.rmtree(HOME, ignore_errors=True)

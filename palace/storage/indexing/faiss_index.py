"""Facts' vectors in FAISS: files in a folder, or in memory. Needs the extra `faiss`."""

from __future__ import annotations

import fcntl
import shutil
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from palace.storage.indexing.vector_index import OutsideIndex, Vector

# Palaces whose files stay in memory.
CACHED = 64
# Identifies a version of a file: a writer replaces the whole file.
_Version = tuple[int, int, int]


class FaissIndex(OutsideIndex):
    """One exact index per space and palace, in a file of its own.

    Several processes can use one folder: a writer locks it and replaces the file, and a reader
    reads it again when it was replaced. Each write copies the palace's file.
    """

    label = "FAISS"
    shares_folder = True
    failures = (RuntimeError, OSError)

    def __init__(self, folder: Path | None = None, *, collection: str = "facts") -> None:
        """
        Args:
            folder: Where the files are stored; default: in memory.
            collection: What the names of its collections begin with.

        Raises:
            VectorStoreAway: the folder cannot be made.
        """
        super().__init__(str(folder or "in memory"), collection)
        self._folder = folder
        self._in_memory: dict[tuple[str, int], Any] = {}
        self._cached: OrderedDict[Path, tuple[_Version, Any]] = OrderedDict()
        if folder is not None:
            with self._calling():
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self) -> None:
        with self._lock:
            self._cached.clear()
            self._in_memory.clear()

    def _collections(self) -> list[str]:
        if self._folder is None:
            return sorted({name for name, _ in self._in_memory})
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def _write(
        self, name: str, dimensions: int, palace: int, vectors: Mapping[int, Vector]
    ) -> None:
        keys = _ids(vectors)
        with self._writing():
            index = self._load(name, palace, fresh=True)
            if index is None:
                index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))
            index.remove_ids(keys)
            index.add_with_ids(np.stack(list(vectors.values())).astype(np.float32), keys)
            self._save(name, palace, index)

    def _closest(
        self, name: str, palace: int, vector: Vector, among: Collection[int], limit: int
    ) -> list[tuple[int, float]]:
        index = self._load(name, palace)
        if index is None:
            return []
        # The parameters do not keep the selector alive.
        selector = faiss.IDSelectorBatch(_ids(among))
        chosen = faiss.SearchParameters()
        chosen.sel = selector
        question = np.asarray(vector, dtype=np.float32)[None]
        cosines, keys = index.search(question, min(limit, index.ntotal), params=chosen)
        pairs = zip(keys[0].tolist(), cosines[0].tolist(), strict=True)
        # -1 fills up the places for which there is no vector.
        return [(key, cosine) for key, cosine in pairs if key != -1]

    def _keys(self, name: str, palace: int, among: Collection[int] | None = None) -> set[int]:
        index = self._load(name, palace)
        if index is None:
            return set()
        stored = set(faiss.vector_to_array(index.id_map).tolist())
        return stored if among is None else stored.intersection(among)

    def _vectors(self, name: str, palace: int, among: Collection[int]) -> dict[int, Vector]:
        index = self._load(name, palace)
        if index is None:
            return {}
        return {key: index.reconstruct(key) for key in self._keys(name, palace, among)}

    def _remove(self, name: str, palace: int, facts: Collection[int]) -> None:
        with self._writing():
            index = self._load(name, palace, fresh=True)
            if index is not None and index.remove_ids(_ids(facts)):
                self._save(name, palace, index)

    def _delete_other_palaces(self, name: str, palaces: Collection[int]) -> None:
        with self._writing():
            for palace in self._palaces(name) - set(palaces):
                self._unlink(name, palace)

    def _drop(self, name: str) -> None:
        with self._writing():
            for palace in self._palaces(name):
                self._unlink(name, palace)
            if self._folder is not None:
                shutil.rmtree(self._folder / name)

    def _palaces(self, name: str) -> set[int]:
        if self._folder is None:
            return {palace for stored, palace in self._in_memory if stored == name}
        return {int(path.stem) for path in (self._folder / name).glob("*.faiss")}

    def _load(self, name: str, palace: int, *, fresh: bool = False) -> Any:
        """The palace's index, or None; a `fresh` one may be changed."""
        if self._folder is None:
            return self._in_memory.get((name, palace))
        path = self._path(name, palace)
        try:
            version = _version(path)
            cached = self._cached.get(path)
            if not fresh and cached is not None and cached[0] == version:
                self._cached.move_to_end(path)
                return cached[1]
            index = faiss.read_index(str(path))
        except FileNotFoundError:
            self._cached.pop(path, None)
            return None
        if not fresh:
            self._cached[path] = version, index
            while len(self._cached) > CACHED:
                self._cached.popitem(last=False)
        return index

    def _save(self, name: str, palace: int, index: Any) -> None:
        if index.ntotal == 0:
            self._unlink(name, palace)
        elif self._folder is None:
            self._in_memory[name, palace] = index
        else:
            path = self._path(name, palace)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            written = path.with_suffix(".new")
            faiss.write_index(index, str(written))
            written.replace(path)

    def _unlink(self, name: str, palace: int) -> None:
        if self._folder is None:
            self._in_memory.pop((name, palace), None)
        else:
            self._path(name, palace).unlink(missing_ok=True)

    def _path(self, name: str, palace: int) -> Path:
        return (self._folder or Path()) / name / f"{palace}.faiss"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Writers in other processes wait."""
        if self._folder is None:
            yield
            return
        with (self._folder / "lock").open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield


def _ids(keys: Collection[int]) -> Any:
    return np.fromiter(keys, dtype=np.int64, count=len(keys))


def _version(path: Path) -> _Version:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size

